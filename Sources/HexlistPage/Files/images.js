// Thumbnails of received images. They are made from the bytes that the daemon has fetched; nothing is loaded from the network.
import { call, faultOf } from './api.js';

/** Maximum width and height of a thumbnail in pixels. */
const side = 256;
/** Maximum number of pixels of an image. Decoding takes four bytes of memory for each pixel. */
const largestImage = 64e6;
/** Maximum number of thumbnails in memory. A further one replaces the oldest. */
const keptThumbnails = 300;
/** The thumbnails of received images, by the id of the transfer; null for an image that cannot be decoded. */
const canvases = new Map();
/** Resolves when the last image in the queue is decoded; images are decoded one after the other. */
let last = Promise.resolve();

const seen = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) if (isIntersecting) { seen.unobserve(target); last = last.then(() => fill(target)); }
}, { rootMargin: '200px' });

/** Whether a thumbnail can be made for a file with this name. */
export const isImage = (name) => /\.(png|jpe?g|gif|webp|bmp)$/i.test(name);

/**
 * Returns the thumbnail of a received image. The element is filled when it is first visible, and removed if the image cannot be decoded.
 * Returns null if an earlier attempt to decode the image failed.
 */
export function thumbnail({ id }) {
  if (canvases.has(id)) return canvases.get(id);
  const canvas = document.createElement('canvas');
  canvas.className = 'thumbnail';
  canvas.width = canvas.height = 1;
  canvas.transfer = id;
  canvases.set(id, canvas);
  if (canvases.size > keptThumbnails) canvases.delete(canvases.keys().next().value);
  seen.observe(canvas);
  return canvas;
}

async function fill(canvas) {
  const fail = () => { canvases.set(canvas.transfer, null); canvas.remove(); };
  try {
    const bytes = await call('GET', `/v1/transfers/${canvas.transfer}/image`, undefined, { isBinary: true });
    const [width, height] = imageSize(new DataView(bytes)) ?? [];
    if (!width || !height || width * height > largestImage) return fail();
    const bitmap = await createImageBitmap(new Blob([bytes])), scale = Math.min(1, side / Math.max(bitmap.width, bitmap.height));
    [canvas.width, canvas.height] = [Math.max(1, Math.round(bitmap.width * scale)), Math.max(1, Math.round(bitmap.height * scale))];
    const context = canvas.getContext('2d');
    context.imageSmoothingQuality = 'high';
    context.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
    bitmap.close();
  } catch (error) {
    fail();
    if (!(error instanceof DOMException)) faultOf(error); // an image that cannot be decoded has no thumbnail
  }
}

/** Returns width and height of a PNG, GIF, JPEG, WebP or BMP image from its first bytes; null for other data. */
export function imageSize(data) {
  const has = (text, at) => data.byteLength >= at + text.length && [...text].every((character, index) => data.getUint8(at + index) === character.charCodeAt(0));
  try {
    if (has('\x89PNG', 0)) return [data.getUint32(16), data.getUint32(20)];
    if (has('GIF8', 0)) return [data.getUint16(6, true), data.getUint16(8, true)];
    if (has('BM', 0)) return [Math.abs(data.getInt32(18, true)), Math.abs(data.getInt32(22, true))];
    if (has('VP8X', 12)) return [1 + (data.getUint32(24, true) & 0xffffff), 1 + (data.getUint32(26, true) >> 8)];
    if (has('VP8L', 12)) { const bits = data.getUint32(21, true); return [1 + (bits & 0x3fff), 1 + (bits >> 14 & 0x3fff)]; }
    if (has('VP8 ', 12)) return [data.getUint16(26, true) & 0x3fff, data.getUint16(28, true) & 0x3fff];
    if (!has('\xff\xd8\xff', 0)) return null;
    for (let at = 2; ;) { // each segment of a JPEG begins with the byte ff, its type and its length
      const type = data.getUint8(at + 1);
      if (type >= 0xc0 && type <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(type)) return [data.getUint16(at + 7), data.getUint16(at + 5)];
      at += 2 + data.getUint16(at + 2);
    }
  } catch {
    return null; // the data ends too early
  }
}
