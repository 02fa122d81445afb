import 'reflect-metadata';
import {
  Body,
  Controller,
  Get,
  Injectable,
  Param,
  ParseIntPipe,
  Post,
  Query,
  Scope,
  SetMetadata,
  UseGuards,
  ValidationPipe,
} from '@nestjs/common';
import { Cron, CronExpression, ScheduleModule, SchedulerRegistry } from '@nestjs/schedule';
import { InjectRepository } from '@nestjs/typeorm';
import { IsInt } from 'class-validator';
import { EmitsEvent, Outbox, Transactional } from 'nestjs-transactional-outbox';
import request from 'supertest';
import { Repository } from 'typeorm';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startApp, type TestApp } from '../setup/app';
import { Note, NoteWritten } from '../setup/notes';

class WriteNote {
  @IsInt() id!: number;
}

/** A decorator of somebody's own, that wraps the method and copies nothing. */
function Logged(calls: string[]): MethodDecorator {
  return (_target, key, descriptor: PropertyDescriptor) => {
    const original = descriptor.value as (...args: unknown[]) => unknown;
    descriptor.value = function (this: unknown, ...args: unknown[]): unknown {
      calls.push(String(key));
      return original.apply(this, args);
    };
  };
}
const calls: string[] = [];
const allow = { canActivate: () => true };
const toEvent = (note: Note) => ({ id: note.id });

@Controller('notes')
class NotesController {
  constructor(
    @InjectRepository(Note) private readonly notes: Repository<Note>,
    private readonly outbox: Outbox,
  ) {}

  @Post('a') @Transactional() @EmitsEvent(NoteWritten, toEvent)
  a(@Body(new ValidationPipe()) body: WriteNote): Promise<Note> {
    return this.put(body.id);
  }

  @EmitsEvent(NoteWritten, toEvent) @Transactional() @Post('b') @UseGuards(allow)
  b(@Body(new ValidationPipe()) body: WriteNote): Promise<Note> {
    return this.put(body.id);
  }

  @Transactional() @Post('c') @SetMetadata('mine', 'kept') @EmitsEvent(NoteWritten, toEvent)
  c(@Body(new ValidationPipe()) body: WriteNote, @Query('plus', ParseIntPipe) plus: number): Promise<Note> {
    return this.put(body.id + plus);
  }

  @Get('d/:id') @EmitsEvent(NoteWritten, toEvent) @Logged(calls) @Transactional()
  d(@Param('id', ParseIntPipe) id: number): Promise<Note> {
    return this.put(id);
  }

  @Post('e/:id') @Transactional() @Logged(calls) @EmitsEvent(NoteWritten, toEvent)
  e(@Param('id', ParseIntPipe) id: number): Promise<Note> {
    return this.put(id);
  }

  @Post('fails/:id') @Transactional() @EmitsEvent(NoteWritten, toEvent)
  async fails(@Param('id', ParseIntPipe) id: number): Promise<Note> {
    await this.put(id);
    this.outbox.emit(NoteWritten.of(id));
    throw new Error('no');
  }

  private put(id: number): Promise<Note> {
    return this.notes.save(this.notes.create({ id }));
  }
}

abstract class Base {
  constructor(@InjectRepository(Note) readonly notes: Repository<Note>) {}

  @Transactional()
  @EmitsEvent(NoteWritten, toEvent)
  async inherited(id: number): Promise<Note> {
    return this.notes.save(this.notes.create({ id }));
  }

  @Transactional()
  @EmitsEvent(NoteWritten, toEvent)
  async overridden(id: number): Promise<Note> {
    return this.notes.save(this.notes.create({ id }));
  }
}

@Injectable()
class Derived extends Base {
  @Transactional()
  override async overridden(id: number): Promise<Note> {
    return super.overridden(id + 1000);
  }

  @Transactional()
  @EmitsEvent(NoteWritten, (note: Note) => ({ id: note.id }))
  @EmitsEvent(NoteWritten, (note: Note, [, second]: [id: number, second: number]) => [{ id: second }, { id: note.id + second }])
  @EmitsEvent(NoteWritten, () => null)
  async several(id: number, _second: number): Promise<Note> {
    return this.notes.save(this.notes.create({ id }));
  }

  @Transactional()
  @EmitsEvent(NoteWritten)
  async itself(id: number): Promise<NoteWritten[]> {
    return [NoteWritten.of(id), NoteWritten.of(id + 1)];
  }

  @Transactional()
  async viaSync(id: number): Promise<Note> {
    return this.sync(id);
  }

  @EmitsEvent(NoteWritten, toEvent)
  sync(id: number): Note {
    return Object.assign(new Note(), { id });
  }

  @Transactional()
  async swallowing(id: number): Promise<void> {
    await this.invalid(id).catch(() => undefined);
  }

  ran = false;

  @EmitsEvent(NoteWritten, toEvent)
  async withoutTransaction(id: number): Promise<Note> {
    this.ran = true;
    return this.notes.save(this.notes.create({ id }));
  }

  @Transactional()
  @EmitsEvent(NoteWritten, () => ({ id: 'x' as unknown as number }))
  async invalid(id: number): Promise<Note> {
    return this.notes.save(this.notes.create({ id }));
  }
}

@Injectable({ scope: Scope.REQUEST })
class PerRequest {
  constructor(@InjectRepository(Note) private readonly notes: Repository<Note>) {}

  @Transactional()
  @EmitsEvent(NoteWritten, toEvent)
  async write(id: number): Promise<Note> {
    return this.notes.save(this.notes.create({ id }));
  }
}

@Controller('scoped')
class ScopedController {
  constructor(private readonly perRequest: PerRequest) {}

  @Post(':id')
  write(@Param('id', ParseIntPipe) id: number): Promise<Note> {
    return this.perRequest.write(id);
  }
}

@Injectable()
class Jobs {
  constructor(@InjectRepository(Note) private readonly notes: Repository<Note>) {}

  @Transactional() @Cron(CronExpression.EVERY_YEAR, { name: 'above' }) @EmitsEvent(NoteWritten, toEvent)
  async above(): Promise<Note> {
    return this.notes.save(this.notes.create({ id: 1 }));
  }

  @Cron(CronExpression.EVERY_YEAR, { name: 'below' }) @EmitsEvent(NoteWritten, toEvent) @Transactional()
  async below(): Promise<Note> {
    return this.notes.save(this.notes.create({ id: 2 }));
  }
}

// C6
describe('decorators', () => {
  let app: TestApp;
  let derived: Derived;

  beforeAll(async () => {
    app = await startApp('sqlite', {
      entities: [Note],
      imports: [ScheduleModule.forRoot()],
      providers: [Derived, PerRequest, Jobs],
      controllers: [NotesController, ScopedController],
    });
    derived = app.app.get(Derived);
  });
  afterAll(() => app.close());
  beforeEach(async () => {
    calls.length = 0;
    for (const table of ['note', 'outbox_message', 'outbox_pending']) await app.dataSource.query(`DELETE FROM ${table}`);
  });

  const rows = async (): Promise<number[]> =>
    (await app.dataSource.getRepository(Note).find({ order: { id: 'ASC' } })).map(({ id }) => id);
  const events = async (): Promise<number[]> => (await app.logged()).map((event) => (event as { id: number }).id);
  const http = () => request(app.app.getHttpServer() as never);

  it.each([
    ['post', '/notes/a', 5],
    ['post', '/notes/b', 5],
    ['post', '/notes/c?plus=2', 7],
    ['get', '/notes/d/5', 5],
    ['post', '/notes/e/5', 5],
  ] as const)('work in any order: %s %s', async (method, path, id) => {
    await http()[method](path).send({ id: 5 }).expect(method === 'get' ? 200 : 201, { id, text: '' });
    expect(await rows()).toEqual([id]);
    expect(await events()).toEqual([id]);
  });

  it.each(['/notes/a', '/notes/b', '/notes/c?plus=2'])('keep pipes: %s', async (path) => {
    await http().post(path).send({ id: 'five' }).expect(400);
    expect(await rows()).toEqual([]);
  });

  it('undo everything when the method fails', async () => {
    await http().post('/notes/fails/1').expect(500);
    expect(await rows()).toEqual([]);
    expect(await events()).toEqual([]);
  });

  it('keep names, lengths, parameter types and other metadata', () => {
    const method = NotesController.prototype.c;
    expect(method.name).toBe('c');
    expect(method).toHaveLength(2);
    expect(Reflect.getMetadata('mine', method)).toBe('kept');
    expect(Reflect.getMetadata('design:paramtypes', NotesController.prototype, 'c')).toEqual([WriteNote, Number]);
  });

  it('leave a home-made wrapper in its place', async () => {
    await http().get('/notes/d/5');
    await http().post('/notes/e/6');
    expect(calls).toEqual(['d', 'e']);
  });

  it('work when they are inherited and overridden', async () => {
    await derived.inherited(1);
    await derived.overridden(2);
    expect(await rows()).toEqual([1, 1002]);
    expect(await events()).toEqual([1, 1002]);
  });

  it('emit several events, in the order in which they are written', async () => {
    await derived.several(1, 20);
    expect(await events()).toEqual([1, 20, 21]);
  });

  it('emit the result itself', async () => {
    await derived.itself(1);
    expect(await events()).toEqual([1, 2]);
  });

  it('emit from synchronous methods, which stay synchronous', async () => {
    await derived.viaSync(3);
    expect(await events()).toEqual([3]);
  });

  it('refuse before the method runs when there is no transaction', async () => {
    expect(() => derived.withoutTransaction(1)).toThrow(expect.objectContaining({ code: 'OUTBOX_NO_TRANSACTION' }));
    expect(derived.ran).toBe(false);
  });

  it('undo the method when its event is invalid', async () => {
    await expect(derived.invalid(1)).rejects.toMatchObject({ code: 'OUTBOX_EVENT_INVALID' });
    expect(await rows()).toEqual([]);
  });

  it('undo the whole when the event of a method is invalid, though its error was swallowed', async () => {
    await expect(derived.swallowing(1)).rejects.toMatchObject({
      code: 'OUTBOX_TRANSACTION_DOOMED',
      cause: { code: 'OUTBOX_EVENT_INVALID' },
    });
    expect(await rows()).toEqual([]);
  });

  it('work on request-scoped providers', async () => {
    await http().post('/scoped/8').expect(201);
    expect(await events()).toEqual([8]);
  });

  it('work beside @Cron, above and below', async () => {
    const registry = app.app.get(SchedulerRegistry);
    for (const name of ['above', 'below']) await registry.getCronJob(name).fireOnTick();
    await expect.poll(events).toEqual([1, 2]);
    expect(await rows()).toEqual([1, 2]);
  });

  it('say what is wrong on an object that Nest did not make', async () => {
    await expect(new Derived(app.dataSource.getRepository(Note)).inherited(1)).rejects.toMatchObject({
      code: 'OUTBOX_NOT_INJECTED',
    });
  });
});
