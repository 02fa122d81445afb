import { Logger } from '@nestjs/common';
import { afterAll, afterEach, beforeAll, beforeEach, vi } from 'vitest';
import type { DatabaseName } from '../setup/databases';
import { StoreFixture } from '../store/fixture';
import { Relays, until } from './fixture';

/** A store and relays on it for the tests of one file, with the log kept quiet. */
export class RelayStage {
  f!: StoreFixture;
  relays!: Relays;

  /** Registers the hooks that open it, clear it after each test, and close it. */
  static use(database: DatabaseName, lanes: number): RelayStage {
    const stage = new RelayStage();
    beforeAll(async () => {
      stage.f = await StoreFixture.open(database, lanes);
      stage.relays = new Relays(stage.f);
    });
    beforeEach(() => {
      vi.spyOn(Logger.prototype, 'error').mockReturnValue();
      vi.spyOn(Logger.prototype, 'log').mockReturnValue();
    });
    afterEach(async () => {
      await stage.relays.stopAll();
      await stage.f.clear();
      vi.restoreAllMocks();
    });
    afterAll(() => stage.f.close());
    return stage;
  }

  drained(): Promise<void> {
    return until(async () => (await this.f.count('pending')) + (await this.f.count('held')) === 0);
  }
}
