/// <reference lib="dom" />
/// <reference lib="dom.iterable" />
import { Injectable } from '@nestjs/common';
import { type EmitOptions, Outbox, OutboxAdmin, OutboxEvent } from 'nestjs-transactional-outbox';
import { IsString } from 'class-validator';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { type Browser, chromium, type Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { chromium as installed } from '../services/chromium.mjs';
import { fastify, type Platform, startHttp } from './http-app';

/** Where pictures go, for who wants to look. */
const PICTURES = process.env.OUTBOX_PICTURES;
const EVIL = [
  '<script>window.hacked=1</script>',
  '<img src=x onerror="window.hacked=1">',
  '"><svg onload=window.hacked=1>',
  "'-window.hacked=1-'",
  'javascript:window.hacked=1',
  '</textarea></title></style><b>bold</b>',
  '{{constructor.constructor("window.hacked=1")()}}',
];

@OutboxEvent({ type: '<i onclick=window.hacked=1>order.created', topic: 'orders', key: (event: Placed) => event.key })
class Placed {
  @IsString() key!: string;
  @IsString() text!: string;
}

@Injectable()
class Orders {
  constructor(readonly outbox: Outbox) {}

  emit(key: string, text: string, options: EmitOptions = {}): void {
    this.outbox.emit(Object.assign(new Placed(), { key, text }), options);
  }
}

describe('the page', () => {
  let browser: Browser;
  let page: Page;
  let app: Awaited<ReturnType<typeof startHttp>>;
  let address: string;
  const problems: string[] = [];

  beforeAll(async () => {
    browser = await chromium.launch({ ...(await installed()), args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'] });
  });
  afterAll(() => browser.close());

  async function start(platform: Platform): Promise<void> {
    app = await startHttp('sqlite', undefined, platform, { providers: [Orders] });
    const orders = app.app.get(Orders);
    await app.notes.transactions.run(async () => {
      for (const text of EVIL) orders.emit(text, text);
      for (let id = 1; id <= 40; id++) await app.notes.write(id);
    });
    // Given up, as a relay does it, with what a broker may answer.
    for (const [index, text] of EVIL.entries()) {
      const where = `(SELECT id FROM outbox_message WHERE topic = 'orders' ORDER BY id LIMIT 1 OFFSET ${index})`;
      await app.dataSource.query(`UPDATE outbox_message SET status = 2, retry_count = 5, last_error = ? WHERE id = ${where}`, [`REFUSED: ${text}`]);
      await app.dataSource.query(`INSERT INTO outbox_dead (id, lane, topic, message_key) SELECT m.id, p.lane, m.topic, m.message_key FROM outbox_message m JOIN outbox_pending p ON p.id = m.id WHERE m.id = ${where}`);
      await app.dataSource.query(`DELETE FROM outbox_pending WHERE id = ${where}`);
    }
    await app.app.get(OutboxAdmin).block('notes', '<b>7</b>', { by: 'test', reason: 'test' });
    await app.app.listen(0, '127.0.0.1');
    address = `${(await app.app.getUrl()).replace('[::1]', '127.0.0.1')}/outbox`;
    problems.length = 0;
  }

  beforeEach(() => start('express'));
  afterEach(async () => {
    await page.context().close();
    await app.close();
  });

  const open = async (options: Parameters<Browser['newContext']>[0] = {}, user = 'anna'): Promise<void> => {
    const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, extraHTTPHeaders: { 'x-user': user }, ...options });
    page = await context.newPage();
    page.on('pageerror', (error) => problems.push(error.message));
    page.on('console', (message) => message.type() === 'error' && problems.push(message.text()));
    page.on('request', (request) => !request.url().startsWith(address) && problems.push(`asks elsewhere: ${request.url()}`));
    page.on('dialog', (dialog) => problems.push(`dialog: ${dialog.message()}`));
    await page.goto(address);
    await page.locator('#list li').first().waitFor();
  };
  const picture = async (name: string, fullPage = true): Promise<void> => {
    if (PICTURES === undefined) return;
    await mkdir(PICTURES, { recursive: true });
    await page.screenshot({ path: join(PICTURES, `${name}.png`), fullPage });
  };
  const isHacked = () => page.evaluate(() => 'hacked' in globalThis);
  const states = async (): Promise<string[]> =>
    (await app.app.get(OutboxAdmin).find({ topic: 'orders' })).messages.map(({ state }) => state);

  it('shows what waits, and text as text, whatever it says', async () => {
    await open();
    expect(page.url()).toBe(`${address}/dashboard`);
    await expect.poll(() => page.locator('#dead').textContent()).toBe('7');
    expect(await page.locator('#pending').textContent()).toBe('40');
    expect(await page.locator('#me').textContent()).toBe('anna');
    const list = await page.locator('#list').textContent();
    for (const text of EVIL) {
      expect(list).toContain(`orders · ${text} ·`);
      expect(list).toContain(`REFUSED: ${text}`);
    }
    expect(await page.locator('#keys').textContent()).toContain('<b>7</b>');
    // Each one's life, with its payload.
    for (const [index, text] of EVIL.entries()) {
      await page.locator('#list .open').nth(index).click();
      await expect.poll(() => page.locator('#life').textContent()).toContain(JSON.stringify(text));
      await page.keyboard.press('Escape');
    }
    expect(await page.locator('main img, main b b, main i, #life script').count()).toBe(0);
    expect([await isHacked(), problems]).toEqual([false, []]);
    await page.waitForFunction(() => document.querySelectorAll('#rates-chart path').length > 0);
  });

  it('allows no script of others, not even one that stood in the page', async () => {
    await open();
    const { headers } = await page.request.get(`${address}/dashboard`).then(async (answer) => ({ headers: answer.headers() }));
    expect(headers['content-security-policy']).toMatch(/default-src 'none'; script-src 'self'; style-src 'self';.*frame-ancestors 'none'/);
    expect(headers['content-security-policy']).not.toContain('unsafe');
    const refused = await page.evaluate(() => {
      try {
        document.body.innerHTML += '<img src=x onerror="window.hacked=1">';
        return 'taken';
      } catch (error) {
        return (error as Error).name;
      }
    });
    expect([refused, await isHacked()]).toEqual(['TypeError', false]);
  });

  it('requeues by keyboard alone, after a confirmation with a reason', async () => {
    await open();
    const focused = () => page.evaluate(() => document.activeElement?.id || document.activeElement?.getAttribute('aria-label') || document.activeElement?.textContent || '');
    const tabTo = async (what: RegExp): Promise<void> => {
      for (let step = 0; step < 80; step++) {
        await page.keyboard.press('Tab');
        if (what.test(await focused())) return;
      }
      throw new Error(`The keyboard does not come to ${what}.`);
    };
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await tabTo(/^Choose message/);
    await page.keyboard.press('Space');
    for (let step = 0; step < 5 && !/^Requeue$/.test(await focused()); step++) await page.keyboard.press('Shift+Tab');
    expect(await focused()).toBe('Requeue');
    await page.keyboard.press('Enter');
    expect(await focused()).toBe('ask-reason');
    // Without a reason, or with blanks, nothing happens.
    await page.keyboard.press('Enter');
    await page.keyboard.type('   ');
    await page.keyboard.press('Enter');
    expect(await page.locator('#ask').isVisible()).toBe(true);
    await page.keyboard.type('stock service is mended');
    await picture('ask', false);
    await page.keyboard.press('Enter');
    await expect.poll(() => page.locator('#said').textContent()).toBe('Requeued: 1.');
    expect((await states()).filter((state) => state === 'pending')).toHaveLength(1);
    await expect.poll(() => page.locator('#dead').textContent()).toBe('6');
    expect(problems).toEqual([]);
  });

  it('discards all shown, and nothing when it is cancelled', async () => {
    await open();
    await page.locator('#choose-all').check();
    await page.locator('[data-act=discard]').click();
    await page.locator('#ask-reason').fill('never mind');
    await page.locator('#ask-no').click();
    expect(await states()).not.toContain('discarded');
    await page.locator('[data-act=discard]').click();
    await page.locator('#ask-reason').fill('wrong amounts');
    await page.locator('#ask-yes').click();
    await expect.poll(() => page.locator('#said').textContent()).toBe('Discarded: 7.');
    expect(new Set(await states())).toEqual(new Set(['discarded']));
    await page.selectOption('[name=state]', 'discarded');
    await expect.poll(() => page.locator('#list').textContent()).toContain('discarded by anna: wrong amounts');
  });

  it('pauses and resumes all relays, and lets a stopped key go on', async () => {
    await open();
    const confirm = async (): Promise<void> => {
      await page.locator('#ask-reason').fill('maintenance');
      await page.locator('#ask-yes').click();
    };
    await page.locator('#pause').click();
    await confirm();
    await expect.poll(() => page.locator('#state').textContent()).toBe('paused');
    expect(await app.app.get(OutboxAdmin).stats()).toMatchObject({ paused: true });
    await page.locator('#pause').click();
    await confirm();
    await expect.poll(() => page.locator('#state').textContent()).not.toBe('paused');
    await page.getByRole('button', { name: 'Release' }).click();
    await confirm();
    await expect.poll(() => page.locator('#keys').textContent()).toContain('No key is held back.');
    expect(problems).toEqual([]);
  });

  it('stops a key and replays from the life of a message, which tells who did what', async () => {
    const sent = `(SELECT id FROM outbox_message WHERE topic = 'notes' ORDER BY id LIMIT 1)`;
    await app.dataSource.query(`UPDATE outbox_message SET status = 1 WHERE id = ${sent}`);
    await app.dataSource.query(`DELETE FROM outbox_pending WHERE id = ${sent}`);
    await open();
    const confirm = async (reason: string): Promise<void> => {
      await page.locator('#ask-reason').fill(reason);
      await page.locator('#ask-yes').click();
    };
    await page.selectOption('[name=state]', 'sent');
    await expect.poll(() => page.locator('#list .badge').allTextContents()).toEqual(['sent']);
    await page.locator('#list .open').click();
    await page.locator('#life').getByRole('button', { name: 'Replay' }).click();
    await confirm('lost by <b>billing</b>');
    await expect.poll(() => page.locator('#said').textContent()).toBe('Replayed: 1.');
    await page.locator('#life').waitFor({ state: 'hidden' });
    await page.selectOption('[name=state]', '');
    await page.fill('[name=topic]', 'notes');
    await page.locator('#search [type=submit]').click();
    await expect.poll(() => page.locator('#list').textContent()).not.toContain('orders');
    await page.locator('#list .open').first().click();
    await expect.poll(() => page.locator('#life .timeline').textContent()).toMatch(/Written .*replay by anna – lost by <b>billing<\/b> – .*pending/);
    await picture('audited', false);
    await page.locator('#life').getByRole('button', { name: 'Stop its key' }).click();
    await confirm('look first');
    await expect.poll(() => page.locator('#said').textContent()).toBe('1 is stopped.');
    await expect.poll(() => page.locator('#keys').textContent()).toMatch(/notes1stopped/);
    expect([await isHacked(), problems]).toEqual([false, []]);
  });

  it('tells a guest that he may not, and hides what messages say', async () => {
    await open({}, 'guest');
    await page.locator('#list .open').first().click();
    await expect.poll(() => page.locator('#life').textContent()).toContain('only to those who may read it');
    await page.keyboard.press('Escape');
    await page.locator('#choose-all').check();
    await page.locator('[data-act=requeue]').click();
    await page.locator('#ask-reason').fill('please');
    await page.locator('#ask-yes').click();
    await expect.poll(() => page.locator('#said').textContent()).toMatch(/Forbidden/);
    expect(new Set(await states())).toEqual(new Set(['dead']));
  });

  it.skipIf(!fastify)('is the same on Fastify', async () => {
    await app.close();
    await start('fastify');
    await open();
    await expect.poll(() => page.locator('#dead').textContent()).toBe('7');
    await page.locator('#list .open').first().click();
    await expect.poll(() => page.locator('#life').textContent()).toContain(JSON.stringify(EVIL[0]));
    await page.keyboard.press('Escape');
    await page.locator('#choose-all').check();
    await page.locator('[data-act=requeue]').click();
    await page.locator('#ask-reason').fill('please');
    await page.locator('#ask-yes').click();
    await expect.poll(async () => new Set(await states())).toEqual(new Set(['pending']));
    expect([await isHacked(), problems]).toEqual([false, []]);
    await page.waitForFunction(() => document.querySelectorAll('#rates-chart path').length > 0);
  });

  it('says so when the server is away, and goes on when it is back', async () => {
    await open();
    await page.route('**/stats', (route) => route.abort());
    await page.locator('#trouble').waitFor();
    expect(await page.locator('#state').textContent()).toBe('no answer');
    await page.unroute('**/stats');
    await page.locator('#trouble').waitFor({ state: 'hidden' });
  });

  it.each(['light', 'dark'] as const)('is readable on a phone and on a desk, %s', async (colorScheme) => {
    for (const [device, width] of [['phone', 360], ['desk', 1280]] as const) {
      await open({ colorScheme, viewport: { width, height: 780 } });
      const orders = app.app.get(Orders);
      for (let round = 0; round < 3; round++) {
        await app.notes.transactions.run(async () => {
          for (let n = 0; n <= round * 4; n++) orders.emit(`customer-${n}`, 'x');
        });
        const before = await page.locator('#backlog-chart .line').first().getAttribute('d');
        await expect.poll(() => page.locator('#backlog-chart .line').first().getAttribute('d'), { timeout: 10_000 }).not.toBe(before);
      }
      // Nothing is wider than the screen, and what is pressed is large enough for a thumb.
      expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(width);
      if (device === 'phone') {
        const low = await page.evaluate(() => [...document.querySelectorAll('button')].filter((each) => each.offsetParent !== null && each.getBoundingClientRect().height < 36).map((each) => each.textContent));
        expect(low).toEqual([]);
      }
      expect(await page.evaluate(() => getComputedStyle(document.body).backgroundColor)).toBe(colorScheme === 'dark' ? 'rgb(15, 17, 23)' : 'rgb(244, 245, 249)');
      await picture(`${device}-${colorScheme}`);
      await page.locator('#list .open').first().click();
      await page.locator('#life').waitFor();
      expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(width);
      await picture(`${device}-${colorScheme}-life`, false);
      if (device === 'phone') await page.context().close();
    }
  });
});
