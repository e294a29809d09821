// Senders without Hexlist: guests with a browser, and shortcuts on phones.
import { call, faultOf, part } from './api.js';
import { h, copy, peerText, wholeTime, button, buttons, field, ask, confirmed, dialog } from './dom.js';

/** Converts a QR code of the daemon, an SVG text, to an element with a label for screen readers. */
export function codeImage(svg, label) {
  const image = new DOMParser().parseFromString(svg, 'image/svg+xml').documentElement;
  image.setAttribute('role', 'img');
  image.setAttribute('aria-label', label);
  return document.adoptNode(image);
}

/** Shows the newest active invitation. If there is none, makes an invitation for 10 minutes. */
export async function inviteDialog() {
  const active = await ask('GET', '/v1/invitations');
  const invitation = active && (active.items.at(-1) ?? await ask('POST', '/v1/invitations', {}));
  if (!invitation) return;
  const until = new Date(invitation.until).toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' });
  dialog('Invite a guest', (close) => [
    h('p', 'A phone or any other browser on this network can scan this code, or open the address, and send you texts and files without Hexlist.'),
    h('div.code', codeImage(invitation.qr, 'QR code of the invitation'), h('code', invitation.url), button('Copy the address', () => copy(invitation.url))),
    invitation.urls.length === 0 ? '' : h('details', h('summary', 'If a phone cannot open it'), invitation.urls.slice(0, 4).map((url) => h('p', h('code', url)))),
    h('p.faint', `It ends at ${until}. The connection is not encrypted: others on this network can read it.`),
    buttons(button('End it now', () => { close(); call('DELETE', `/v1/invitations/${invitation.id}`).catch(faultOf); }), button('Close', close, '.strong')),
  ]);
}

/** Opens a dialog that lists, adds and removes drop tokens: the secrets with which shortcuts on phones send. */
export async function dropDialog() {
  const drops = await ask('GET', '/v1/drops');
  if (!drops) return;
  const name = h('input', { maxlength: 40, required: true, placeholder: 'my iPhone', 'aria-label': 'Name of the device' });
  dialog('Shortcuts on phones', (close) => [
    h('p', 'A shortcut on a phone, or any program that can send a web request, puts links, texts and files into your inbox with its own address.'),
    drops.items.map((drop) => field(peerText(drop.name),
      h('span.faint', drop.usedAt ? `last used ${wholeTime(drop.usedAt)}` : 'never used'),
      button('Remove', async () => {
        if (!await confirmed('Remove this address?', `The shortcut “${drop.name}” can no longer send. What it sent stays.`, 'Remove')) return;
        if (await ask('DELETE', `/v1/drops/${part(drop.uuid)}`, undefined, 'Removed.')) { close(); dropDialog(); }
      }, '', { 'aria-label': `Remove ${drop.name}` }))),
    h('form.field', { onsubmit: async (event) => {
      event.preventDefault();
      const drop = await ask('POST', '/v1/drops', { name: name.value.trim() });
      if (drop) { close(); dropAddress(drop); }
    } }, h('span', 'Add'), name, h('button.strong', { type: 'submit' }, 'Add')),
    h('p.faint', 'The connection is not encrypted: others on this network can read the address when it is used, and send with it. Use it in networks you trust.'),
  ]);
}

/** Shows the URL of a new drop token. It cannot be shown again, because the daemon stores only a hash of the token. */
function dropAddress(drop) {
  dialog('Address for the shortcut', (close) => [
    h('p', 'Copy this address into the shortcut now; it is not shown again. To get it onto the phone, scan the code and copy the address.'),
    h('div.code', codeImage(drop.qr, 'QR code of the address'), h('code', drop.url), button('Copy the address', () => copy(drop.url))),
    drop.urls.length === 0 ? '' : h('details', h('summary', 'If the phone cannot reach it'), drop.urls.slice(0, 4).map((url) => h('p', h('code', url)))),
    h('p.faint', 'The shortcut sends a POST request with a text, or with the fields “url”, “text” or “title”, or a file.'),
    buttons(button('Done', () => { close(); dropDialog(); }, '.strong')),
  ]);
}
