import { Body, Controller, Get, HttpCode, Inject, Param, Post, Query, Req } from '@nestjs/common';
import type { DeadLetterPage, DeadLetters, ReplayResult } from '../operate/dead-letters';
import type { KafkaClient } from '../operate/kafka-topic';
import { type HttpRequest, type HttpSettings, operatorOf } from './http-options';
import { HTTP_DEAD_LETTERS, HTTP_KAFKA, HTTP_SETTINGS } from './http-tokens';
import { as, given, LettersRequest, ReplayRequest } from './requests';

/** What consumers have given up; where the module has a client of Kafka. */
@Controller()
export class DeadLetterController {
  constructor(
    @Inject(HTTP_DEAD_LETTERS) private readonly letters: DeadLetters,
    @Inject(HTTP_KAFKA) private readonly kafka: KafkaClient,
    @Inject(HTTP_SETTINGS) private readonly settings: HttpSettings,
  ) {}

  @Get('dead-letters/:topic')
  async list(@Param('topic') topic: string, @Query(as(LettersRequest)) { after, limit }: LettersRequest): Promise<DeadLetterPage> {
    return this.letters.list(this.kafka, topic, given({ after, limit }));
  }

  @Post('dead-letters/:topic/replay')
  @HttpCode(200)
  async replay(@Param('topic') topic: string, @Body(as(ReplayRequest)) { places, reason }: ReplayRequest, @Req() request: HttpRequest): Promise<ReplayResult> {
    return this.letters.replay(this.kafka, topic, places, operatorOf(this.settings, request, reason));
  }
}
