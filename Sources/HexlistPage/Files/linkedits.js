// Changes of the links of a hex, while others may change it too.
import { call } from './api.js';

/** Maximum attempts of one change. Each fails only if another change was made within milliseconds. */
const attempts = 20;

/**
 * Returns the edits for the present links of a hex, after others have added, removed or moved some: links that were removed meanwhile stay
 * removed, and added ones stay, behind those of the edits.
 */
function rebased(edits, base, current) {
  const numbers = new Map(current.map(({ node }, index) => [node, index + 1])), known = new Set(base.map(({ node }) => node));
  const kept = edits.flatMap((edit) => {
    if (!edit.from) return [edit];
    const from = numbers.get(base[edit.from - 1]?.node);
    return from ? [{ ...edit, from }] : [];
  });
  const added = current.flatMap(({ node }, index) => known.has(node) ? [] : [{ from: index + 1 }]);
  const end = kept.findLastIndex(({ from }) => from) + 1;
  return [...kept.slice(0, end), ...added, ...kept.slice(end)];
}

/**
 * Changes the links of a hex of My Hexlist. Changes that others make at the same time stay. Throws a Fault.
 * @param hex the hex, as read by `GET /v1/hexes/{id}`, to whose links the edits refer
 * @param links the new links, each `{from?, url?, …}`
 * @param others further members of the request
 */
export async function changeLinks(hex, links, others = {}) {
  for (let base = hex, left = attempts; ; left -= 1) {
    try {
      return await call('PATCH', `/v1/mine/${hex.id}`, { ...others, links, version: base.version });
    } catch (error) {
      if (error.code !== 'changed' || left <= 0) throw error;
      const current = await call('GET', `/v1/hexes/${hex.id}`);
      links = rebased(links, base.links, current.links);
      base = current;
    }
  }
}
