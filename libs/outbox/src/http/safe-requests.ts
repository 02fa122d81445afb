import { type CanActivate, type ExecutionContext, ForbiddenException, Inject, Injectable, UnsupportedMediaTypeException } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import type { HttpRequest } from './http-options';

const HEADERS: Readonly<Record<string, string>> = {
  'Cache-Control': 'no-store',
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Content-Security-Policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
};

/**
 * Stands before the guards. No other site may have a user's browser act: writing takes JSON, which a form cannot send,
 * and nothing that the browser itself says to come from elsewhere.
 */
@Injectable()
export class SafeRequests implements CanActivate {
  constructor(@Inject(HttpAdapterHost) private readonly host: HttpAdapterHost) {}

  canActivate(context: ExecutionContext): boolean {
    const request = context.switchToHttp().getRequest<HttpRequest>();
    for (const [name, value] of Object.entries(HEADERS)) this.host.httpAdapter.setHeader(context.switchToHttp().getResponse(), name, value);
    if (request.method === 'GET' || request.method === 'HEAD') return true;
    const { 'content-type': type, 'sec-fetch-site': site } = request.headers;
    if (site !== undefined && site !== 'same-origin' && site !== 'none') throw new ForbiddenException('It must be asked from the same origin.');
    if (typeof type !== 'string' || !/^application\/json\s*(;|$)/i.test(type)) throw new UnsupportedMediaTypeException('The body must be application/json.');
    return true;
  }
}
