// Cards of LocalSend devices (phones and computers) that want to send files, with buttons for the user's answer.
import { h, peerName, clean, count, bytesText, button, buttons, confirmed, ask, setChildren } from './dom.js';

export const uploads = h('div.uploads', { role: 'status' });
let drawn = '';

/** Draws a card for each waiting request of a LocalSend device. */
export function uploadRequestsChanged(requests = []) {
  const key = JSON.stringify(requests);
  if (key === drawn) return;
  drawn = key;
  setChildren(uploads, ...requests.map(card));
}

function card(request) {
  const refuse = () => ask('POST', `/v1/upload-requests/${request.id}/refuse`);
  const accept = (word) => ask('POST', `/v1/upload-requests/${request.id}/${word}`, undefined, 'The files appear in the inbox when all are here.');
  const trust = async () => {
    if (await confirmed('Accept and trust?', 'From now on, what this device sends arrives in the inbox without a question. Its fingerprint is not compared.', 'Accept and trust')) accept('accept?trust=true');
  };
  const names = request.names.map(clean).join(', ') + (request.files > request.names.length ? ', …' : '');
  return h('div.notice', h('b', peerName(request)), ` (stranger) wants to send you ${count(request.files, 'file')} (${bytesText(request.size)}): `, h('bdi', names),
    buttons(button('Refuse', refuse), button('Accept and trust…', trust), button('Accept', () => accept('accept'), '.strong')));
}
