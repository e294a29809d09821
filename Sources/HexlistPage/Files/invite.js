// Invitations of guests: phones and other browsers without Hexlist.
import { call, faultOf } from './api.js';
import { h, copy, button, buttons, ask, dialog } from './dom.js';

/** Returns the image of a QR code that the daemon drew; only its paths are copied. */
export function codeImage(svg, label) {
  const image = new DOMParser().parseFromString(svg, 'image/svg+xml').documentElement;
  image.setAttribute('role', 'img');
  image.setAttribute('aria-label', label);
  return document.adoptNode(image);
}

/** Shows the newest active invitation, or invites guests for 10 minutes. */
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
