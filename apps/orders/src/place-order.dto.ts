import { IsInt, Matches, Max, Min } from 'class-validator';

/** The body of `POST /orders`. */
export class PlaceOrder {
  /** Plain: databases differ in which of other texts they take for the same. */
  @Matches(/^[a-z0-9-]{1,64}$/)
  productId!: string;

  @IsInt()
  @Min(1)
  @Max(1000)
  quantity!: number;
}
