import type { QueryRunner } from 'typeorm';
import { type Check, fault, ok, warning } from './finding';

const DIRECT = 'Give relays and cleaners an address of the database itself, or of a pool in session mode: their session settings and locks get lost here, or stay with others.';

/** Whether this connection has a session of the server for itself. */
export const connectionPooler: Check = {
  id: 'connection.pooler',
  outside: true,
  async look({ sql, dialect, dataSource }) {
    const isPostgres = dialect.name === 'postgres';
    const session = async (queryRunner: QueryRunner): Promise<string> => {
      // With a second column, since proxies answer the well-known question themselves.
      const rows = (await queryRunner.query(isPostgres ? 'SELECT pg_backend_pid() AS id' : 'SELECT CONNECTION_ID() AS id, @@server_id AS server')) as { id: unknown }[];
      return String(rows[0]?.id);
    };
    const greeted: unknown = Reflect.get((await sql.connect()) as object, isPostgres ? 'processID' : 'threadId');
    const mine = await session(sql);
    const other = dataSource.createQueryRunner();
    try {
      // A pool hands out what rests: the session that was used just now.
      await other.query('START TRANSACTION READ ONLY');
      const theirs = await session(other);
      if (theirs === mine) return fault(`two connections share session ${mine} of the server: a pool gives them out by transaction`, DIRECT);
      const again = await session(sql);
      if (again !== mine) return fault(`session ${mine} of the server has become ${again} between two statements: a pool gives them out by transaction`, DIRECT);
    } catch (error) {
      if (error instanceof Error && /statement pooling/.test(error.message)) return fault(`a pool gives sessions out by statement: ${error.message}`, DIRECT);
      throw error;
    } finally {
      await other.query('ROLLBACK').catch(() => undefined);
      await other.release().catch(() => undefined);
    }
    if (greeted === undefined || greeted === null || String(greeted) === mine) return ok('a session of the server for each connection');
    if (isPostgres) return ok('a pool in between, in session mode');
    return warning(
      `a proxy in between: it said session ${String(greeted)}, the server says ${mine}`,
      'Let it send the outbox\'s reads and writes to one server, and keep a connection on its session (ProxySQL: no multiplexing; MaxScale: no splitting of reads).',
    );
  },
};
