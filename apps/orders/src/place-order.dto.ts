import { IsInt, IsString, Length, Max, Min } from 'class-validator';

/** The body of `POST /orders`. */
export class PlaceOrder {
  @IsString()
  @Length(1, 64)
  productId!: string;

  @IsInt()
  @Min(1)
  @Max(1000)
  quantity!: number;
}
