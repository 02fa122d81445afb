/** The stages that an event passes, and which others each may know. docs/architecture.md draws it. */
const MAY_IMPORT = {
  event: [],
  transaction: ['event'],
  store: ['event'],
  publish: ['event'],
  write: ['event', 'transaction'],
  relay: ['event', 'transaction', 'store', 'publish'],
  consume: ['event', 'transaction', 'store'],
  operate: ['event', 'transaction', 'store', 'relay', 'consume'],
  observe: ['event', 'publish', 'store', 'relay', 'consume'],
  // Offered by an entry of its own, for apps that have a web server.
  http: ['transaction', 'store', 'operate'],
  // A program of its own, which nothing imports.
  cli: ['event', 'transaction', 'write', 'store', 'publish', 'relay', 'consume', 'operate', 'observe'],
};

const SOURCE = '^libs/outbox/src';

const stageRules = Object.entries(MAY_IMPORT).map(([stage, allowed]) => ({
  name: `${stage}-knows-only-earlier-stages`,
  severity: 'error',
  from: { path: `${SOURCE}/${stage}/` },
  to: {
    path: SOURCE,
    pathNot: [stage, ...allowed]
      .map((name) => `${SOURCE}/${name}/`)
      // The program puts the parts together as the module does.
      .concat(`${SOURCE}/errors\\.ts$`, stage === 'cli' ? `${SOURCE}/(outbox-core|options)\\.ts$` : []),
  },
}));

module.exports = {
  forbidden: [
    ...stageRules,
    { name: 'no-circular', severity: 'error', from: {}, to: { circular: true, viaOnly: { dependencyTypesNot: ['type-only'] } } },
    {
      name: 'no-orphans',
      severity: 'error',
      from: { orphan: true, pathNot: ['\\.spec\\.ts$', '\\.d\\.ts$'] },
      to: {},
    },
    {
      name: 'kafka-clients-and-microservices-are-optional',
      comment: 'What index.ts reaches must load without the optional peers; emit-context tries to.',
      severity: 'error',
      from: { path: SOURCE, pathNot: [`${SOURCE}/(publish/(kafkajs|platformatic|in-memory)|observe/(prometheus|open-telemetry)|write/emit-context|consume/batch/kafka-batch-server|cli/)`, '\\.spec\\.ts$'] },
      to: { path: 'node_modules/(kafkajs|@platformatic|ioredis|prom-client|@opentelemetry|@nestjs/microservices)', dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'apps-use-the-published-library',
      severity: 'error',
      from: { path: '^apps' },
      to: { path: SOURCE },
    },
    {
      name: 'no-undeclared-packages',
      severity: 'error',
      from: { path: SOURCE, pathNot: '\\.spec\\.ts$' },
      to: { dependencyTypes: ['npm-no-pkg', 'unknown', 'undetermined'], dependencyTypesNot: ['npm-peer'] },
    },
  ],
  options: {
    doNotFollow: { path: ['node_modules', '/dist/'] },
    tsConfig: { fileName: 'libs/outbox/tsconfig.json' },
    tsPreCompilationDeps: true,
    enhancedResolveOptions: { exportsFields: ['exports'], conditionNames: ['import', 'require', 'node', 'default'] },
  },
};
