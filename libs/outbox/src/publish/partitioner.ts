const SEED = 0x9747b28c;
const MULTIPLIER = 0x5bd1e995;

/** MurmurHash2 as Kafka's Java client computes it: a signed 32-bit number. */
function murmur2(bytes: Uint8Array): number {
  const length = bytes.length;
  const whole = length & ~3;
  const at = (index: number) => bytes[index] ?? 0;
  let hash = SEED ^ length;
  for (let i = 0; i < whole; i += 4) {
    let k = at(i) | (at(i + 1) << 8) | (at(i + 2) << 16) | (at(i + 3) << 24);
    k = Math.imul(k, MULTIPLIER);
    k ^= k >>> 24;
    k = Math.imul(k, MULTIPLIER);
    hash = Math.imul(hash, MULTIPLIER) ^ k;
  }
  const rest = length - whole;
  if (rest > 0) {
    if (rest === 3) hash ^= at(whole + 2) << 16;
    if (rest >= 2) hash ^= at(whole + 1) << 8;
    hash = Math.imul(hash ^ at(whole), MULTIPLIER);
  }
  hash ^= hash >>> 13;
  hash = Math.imul(hash, MULTIPLIER);
  return hash ^ (hash >>> 15);
}

/**
 * The partition of a key: the same one that Kafka's Java client, Debezium and kafkajs 2 choose. An empty key is a key;
 * records without a key have no fixed partition and are not for this function.
 */
export function partitionOf(key: string | Uint8Array, partitionCount: number): number {
  const bytes = typeof key === 'string' ? Buffer.from(key, 'utf8') : key;
  return (murmur2(bytes) & 0x7fffffff) % partitionCount;
}
