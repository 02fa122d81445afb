/**
 * 32-bit FNV-1a over the UTF-8 bytes, with a final mix so that its low bits are even too. It decides lanes and order
 * buckets, so it must never change while messages are pending.
 */
function hash(text: string): number {
  let h = 0x811c9dc5;
  for (const byte of Buffer.from(text, 'utf8')) {
    h = Math.imul(h ^ byte, 0x01000193);
  }
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}

/** The number, below `count`, of the lane or bucket that a (topic, key) belongs to. */
export function slotOf(topic: string, key: string, count: number): number {
  return hash(`${topic}\u0000${key}`) % count;
}
