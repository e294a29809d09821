// Changes of a hex of My Hexlist that name links by their nodes, for `PATCH /v1/mine/{id}`. Links that others add or change at the same time
// are not named, so they stay as they are.

/** Returns the change that adds a link {url, linkDescription?, …}. @param after the node of the link or hex behind which it is put; undefined for the end */
export const addition = ({ url, linkDescription, service, tags, note }, after, readTitle = true) =>
  ({ add: { url, title: linkDescription, service, tags, note, ...(!readTitle && { readTitle }) }, after });

/** Returns the indices of a longest ascending subsequence of numbers; others than numbers do not count. */
function ascending(numbers) {
  const ends = [], before = [];
  for (const [index, number] of numbers.entries()) {
    if (typeof number !== 'number') continue;
    let low = 0, high = ends.length;
    while (low < high) {
      const middle = low + high >> 1;
      if (numbers[ends[middle]] < number) low = middle + 1; else high = middle;
    }
    before[index] = ends[low - 1];
    ends[low] = index;
  }
  const indices = new Set();
  for (let next = ends.at(-1); next !== undefined; next = before[next]) indices.add(next);
  return indices;
}

/**
 * Returns the changes that turn the links of a hex into the edited ones.
 * @param hex the hex, as read by `GET /v1/hexes/{id}`
 * @param edited the new links in order: `{from, linkDescription?}` for a present one, counted from 1, or `{url, linkDescription?}`
 */
export function linkChanges(hex, edited) {
  const kept = new Set(edited.map(({ from }) => from)), node = (number) => hex.links[number - 1].node;
  const changes = hex.links.flatMap((link, index) => kept.has(index + 1) ? [] : [{ remove: link.node }]);
  for (const { from, linkDescription: title } of edited) {
    if (from && title !== undefined && title !== hex.links[from - 1].linkDescription) changes.push({ node: node(from), title });
  }
  const fixed = ascending(edited.map(({ from }) => from)), last = Math.max(-1, ...fixed);
  let previous = hex.node;
  for (const [index, link] of edited.entries()) {
    if (fixed.has(index)) { previous = node(link.from); continue; }
    // Links at the end are put behind those that others add there meanwhile.
    const after = index > last ? undefined : previous;
    changes.push(link.from ? { move: node(link.from), after } : addition(link, after));
  }
  return changes;
}
