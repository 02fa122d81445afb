import { Controller, Get, Inject, NotFoundException, Param, Redirect, Req, Res } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { HttpRequest } from './http-options';

const FOLDER = join(__dirname, '../../dashboard');
const TYPES: Readonly<Record<string, string>> = {
  'index.html': 'text/html',
  'style.css': 'text/css',
  'icon.svg': 'image/svg+xml',
  ...Object.fromEntries(['app', 'api', 'chart', 'dialogs', 'dom', 'messages', 'overview'].map((name) => [`${name}.js`, 'text/javascript'])),
};

/** The page, and the files of its own that it is made of. */
@Controller()
export class DashboardController {
  private readonly files = new Map(Object.keys(TYPES).map((name) => [name, readFileSync(join(FOLDER, name), 'utf8')]));

  constructor(@Inject(HttpAdapterHost) private readonly host: HttpAdapterHost) {}

  /** Relative, since a proxy may have taken a part of the path away. */
  @Get()
  @Redirect()
  home(@Req() { url }: HttpRequest): { url: string; statusCode: number } {
    const last = /([^/?]*)(\?|$)/.exec(url)?.[1] ?? '';
    return { url: last === '' ? 'dashboard' : `${last}/dashboard`, statusCode: 302 };
  }

  @Get('dashboard')
  page(@Res({ passthrough: true }) response: unknown): string {
    return this.file('index.html', response);
  }

  @Get('dashboard/:file')
  part(@Param('file') file: string, @Res({ passthrough: true }) response: unknown): string {
    return this.file(file, response);
  }

  private file(name: string, response: unknown): string {
    const text = this.files.get(name);
    if (text === undefined) throw new NotFoundException('There is no such file.');
    this.host.httpAdapter.setHeader(response, 'Content-Type', `${TYPES[name]}; charset=utf-8`);
    return text;
  }
}
