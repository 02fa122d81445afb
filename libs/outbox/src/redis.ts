export { redisDedupe, type RedisDedupeOptions } from './consume/redis/redis-dedupe';
export type { RedisClient } from './consume/redis/redis-client';
