export { platformaticPublisher } from './publish/platformatic/platformatic-publisher';
export type {
  PlatformaticClientOptions,
  PlatformaticPublisherOptions,
  PlatformaticSaslOptions,
} from './publish/platformatic/options';
