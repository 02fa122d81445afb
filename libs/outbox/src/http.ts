export type { HttpGuard, HttpRequest, OutboxHttpOptions } from './http/http-options';
export { OutboxHttpModule } from './http/outbox-http.module';
