// Finds links in text. Pure functions, shared by the extension and by the page of `hexlist web`. They follow the rules of `LinkText` in
// `hexlist send`. Tests/HexlistFormatsTests/Fixtures/messages.txt has examples.

/** Characters that end an address, as part of a character class. Includes the invisible characters of text direction. */
const ending = '\\s\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff<>"`“”„«»。、，；：！？（）「」『』【】《》،؛؟।…';
const start = new RegExp(`(?:[a-z][a-z0-9+.-]{1,31}://|(?<![a-z0-9@/.\\-_=%])www\\.)(?=[^${ending}])`, "giu");
const ends = new RegExp(`[${ending}]`, "u");
/** A comma, semicolon, bar or bracket directly before the next address: it separates two addresses. */
const separator = /[,;|)\]]https?:\/\//iy;
const punctuation = ".,;:!?…。、，．；：！？،؛؟।";
const emphasis = "*_~";
const closing = { "(": ")", "[": "]", "{": "}", "'": "'", "‘": "’" };
const opening = Object.fromEntries(Object.entries(closing).map(([open, close]) => [close, open]));
const host = /^www\.[^\s./?#:]+(?:\.[^\s./?#:]+)+/iu;

/**
 * Returns the addresses in a text as {url, from, to}, in its order: absolute URLs, and host names that begin with `www.`. `from` and `to`
 * are the range in the text.
 */
export function addressesInText(text) {
  const found = [];
  start.lastIndex = 0;
  for (let match; (match = start.exec(text)); ) {
    // In `Title-https://a.example` the match includes the word `Title-`, so skip to `https`. In `git+https` the whole is the scheme.
    const begin = match.index + Math.max(0, match[0].search(/(?<!\+)https?:\/\/$/i));
    const before = text[begin - 1];
    const end = endOfAddress(text, start.lastIndex, before);
    const url = withoutPunctuation(text.slice(begin, end), before, start.lastIndex - begin);
    const isAddress = match[0].includes("://");
    if (isAddress || host.test(url)) {
      found.push({ url: isAddress ? url : `https://${url}`, from: begin, to: begin + url.length });
      start.lastIndex = begin + url.length;
    } else {
      start.lastIndex = end;
    }
  }
  return found;
}

/** Returns the end of an address: at an ending character, a separator, or a bracket or quote that was opened before the address. */
function endOfAddress(text, from, open) {
  const close = closing[open], brackets = { "(": 0, "[": 0, "{": 0 };
  let depth = 0;
  for (let at = from; at < text.length; at += 1) {
    separator.lastIndex = at;
    if (ends.test(text[at]) || separator.test(text) || (open === "<" && text[at] === "|")) return at;
    if (text[at] in brackets) brackets[text[at]] += 1;
    else if (opening[text[at]] in brackets && --brackets[opening[text[at]]] < 0) return at;
    // An apostrophe before a letter is part of a word.
    if (text[at] === "'" && /[a-z]/i.test(text[at + 1] ?? "")) continue;
    if (close && text[at] === close && depth === 0) return at;
    depth += text[at] === close ? -1 : text[at] === open ? 1 : 0;
  }
  return text.length;
}

/** Returns an address without trailing punctuation and without closing marks that have no opening mark in it. */
function withoutPunctuation(url, before, from) {
  const count = {};
  for (const character of url) count[character] = (count[character] ?? 0) + 1;
  let end = url.length;
  for (; end > from + 1; end -= 1) {
    const last = url[end - 1];
    const isUnopened = last in opening && (last === opening[last] ? count[last] % 2 === 1 : count[last] > (count[opening[last]] ?? 0));
    if (!isUnopened && !punctuation.includes(last) && !(emphasis.includes(last) && before === last)) break;
    count[last] -= 1;
  }
  return url.slice(0, end);
}

// --- Titles and description

/** A line that begins with a link which `addressesInText` does not find: a host such as `example.org/a`, or a link such as `mailto:a@b`. */
const firstWord = /^(?:(?<bare>(?:[a-z0-9-]+\.)+[a-z]{2,}(?::\d+)?(?:[/?#]\S*)?)|(?:mailto|tel|sms|magnet|geo|xmpp|matrix|news|urn|doi|hexlist):\S+)(?=\s|$)/;
/** `[title](address "note")` of Markdown, also for an image; and `<address|title>`, as Slack copies links. */
const markdown = /!?\[(?<title>(?:[^[\]\\]|\\.|\[[^\]]*\])*)\]\((?:<(?<angled>[^<>\s]+)>|(?<plain>[a-z][a-z0-9+.-]*:(?:[^\s()]|\((?:[^\s()]|\([^\s()]*\))*\))+))(?:\s+(?:"[^"]*"|'[^']*'))?\s*\)/giu;
const slack = /<(?<address>[a-z][a-z0-9+.-]*:\/\/[^\s<>|]+)\|(?<title>[^<>]+)>/giu;
const space = "\\s\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff";
const marks = new RegExp(`^[${space}]*(?:(?:[-*+•‣◦▪·–—>→|]|\\d{1,6}[.)]|\\[[ xX]\\])(?=[${space}]|$)[${space}]*)*`, "u");
const separators = ":：|\\-–—→=,;>", opens = "(\\[{<\"'`“„‘«‹「『（【《*_~", closes = ")\\]}>\"'`”’»›」』）】》*_~" + punctuation.replace("?", "\\?");
const pairs = [...["()", "[]", "{}", "<>", '""', "''", "``", "“”", "„“", "‘’", "«»", "‹›", "「」", "『』", "（）", "【】", "《》"], "**", "__", "~~"];
const leading = new RegExp(`^[${space}]+`, "u"), trailing = new RegExp(`[${space}]+$`, "u");
const separatorsAtEnd = new RegExp(`[${space}${separators}]+$`, "u"), marksAtEnd = new RegExp(`[${space}${separators}${opens}]+$`, "u");
const closesAtStart = new RegExp(`^[${closes}]+`, "u"), opensAtEnd = new RegExp(`[${space}${opens}]+$`, "u");
const attached = new RegExp(`^[${punctuation.replace("?", "\\?")})\\]}>”’»›」』）】》]`, "u");
const trimmed = (text) => text.replace(leading, "").replace(trailing, "");

/** Returns the text before a link as its title: without separators and opening marks at its end, and marks around the whole. */
function before(text) {
  let words = text.replace(leading, "").replace(marksAtEnd, "");
  for (let pair; (pair = pairs.slice(0, 17).find(([open]) => words[0] === open)); ) {
    const close = words.indexOf(pair[1], 1);
    if (close >= 0 && close !== words.length - 1) break;
    words = close < 0 ? words.slice(1) : words.slice(1, -1);
  }
  return words;
}
/** Returns the text after a link as its title: without closing marks at its start and, before another link, opening marks at its end. */
const behind = (text, isLast) => text.replace(closesAtStart, "").replace(leading, "").replace(isLast ? trailing : opensAtEnd, "");

/** Divides a line into its links {url, title, from, to}, the offset `begin` after its list marks, and whether it is a list item. */
function readLine(line) {
  const begin = marks.exec(line)[0].length, links = [];
  const add = (url, title, from, to) => { if (from >= begin && !links.some((link) => from < link.to && to > link.from)) links.push({ url, title, from, to }); };
  const [word] = firstWord.exec(line.slice(begin)) ?? [];
  if (word) add(/^[a-z]+:\S/.test(word) && !/^[^/]*\./.test(word.split(":")[0]) ? word : `https://${word}`, "", begin, begin + word.length);
  for (const { 0: whole, index, groups } of line.matchAll(markdown)) {
    if (/^[a-z][a-z0-9+.-]*:/i.test(groups.angled ?? groups.plain)) add(groups.angled ?? groups.plain, trimmed(groups.title.replace(/\\([[\]])/g, "$1")), index, index + whole.length);
  }
  for (const { 0: whole, index, groups } of line.matchAll(slack)) add(groups.address, trimmed(groups.title), index, index + whole.length);
  for (const { url, from, to } of addressesInText(line)) {
    let [first, end] = [from, to];
    while (first > begin && pairs.includes(line[first - 1] + line[end])) { first -= 1; end += 1; }
    add(url, "", first, end);
  }
  links.sort((one, other) => one.from - other.from);
  return { line, begin, links, isItem: trimmed(line.slice(0, begin)) !== "" };
}

/** Returns the text of a line without its links. */
function textOf({ line, begin, links }) {
  let text = "", from = begin;
  for (const { from: next, to } of [...links, { from: line.length }]) {
    let part = trimmed(line.slice(from, next));
    if (to !== undefined) part = part.replace(separatorsAtEnd, "");
    if (part) text += text && !attached.test(part) ? ` ${part}` : part;
    from = to;
  }
  return text;
}

/**
 * Separates a text that people type or paste into links {url, title} and a description. The words next to a link are its title if the line
 * begins with a link, if it is a list item, or if several lines have links. Otherwise they belong to the description.
 */
export function linksAndText(text) {
  const lines = text.split(/\r\n|[\n\v\f\r\u0085\u2028\u2029]/).map(readLine), isList = lines.filter(({ links }) => links.length).length > 1;
  const all = [], rest = [];
  for (const each of lines) {
    const { line, begin, isItem, links } = each, startsWithLink = links[0]?.from === begin;
    if (!links.length) rest.push(trimmed(line));
    else if (!isList && !isItem && !startsWithLink) { all.push(...links); rest.push(textOf(each)); }
    else {
      const notes = [];
      for (const [index, link] of links.entries()) {
        const isLast = index === links.length - 1;
        const first = before(line.slice(index ? links[index - 1].to : begin, link.from)), last = behind(line.slice(link.to, links[index + 1]?.from ?? line.length), isLast);
        const words = [...startsWithLink ? [] : [index ? behind(first, true) : first], ...startsWithLink || isLast ? [last] : []].filter(Boolean).join(" ");
        if (link.title && words) notes.push(words);
        all.push({ ...link, title: link.title || words });
      }
      if (notes.length) rest.push(notes.join(" "));
    }
  }
  // An address that is repeated directly as its own title is one link.
  const links = all.filter(({ url, title }, index) => title || url !== all[index + 1]?.url).map(({ url, title }) => ({ url, title }));
  return { links, description: rest.filter((line, index) => line || (index && rest[index - 1])).join("\n").trim() };
}
