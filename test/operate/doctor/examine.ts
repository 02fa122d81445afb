import { type CheckId, diagnoseOutbox, type DiagnosisOptions, type Finding } from 'nestjs-transactional-outbox';
import type { DataSource } from 'typeorm';

export interface Examined {
  /** Every check that has not found all well, with its verdict. */
  readonly wrong: Partial<Record<CheckId, Finding['verdict']>>;
  readonly healthy: boolean;
  /** What a check has seen. */
  seen(check: CheckId): string;
  readonly findings: readonly Finding[];
}

export async function examine(dataSource: DataSource, options: DiagnosisOptions = {}): Promise<Examined> {
  const { findings, healthy } = await diagnoseOutbox(dataSource, options);
  return {
    findings,
    healthy,
    wrong: Object.fromEntries(findings.filter(({ verdict }) => verdict !== 'ok').map(({ check, verdict }) => [check, verdict])),
    seen: (check) => findings.find((finding) => finding.check === check)?.seen ?? `${check} was not looked at`,
  };
}
