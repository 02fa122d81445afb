export { publisherAcceptance } from './publish/acceptance/publisher-acceptance';
export type { AcceptanceCase, Fault, PublisherSetup, ReadRecord, TopicRequest } from './publish/acceptance/setup';
