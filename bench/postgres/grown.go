package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

func grown(ctx context.Context, e *env, rows int) error {
	return fmt.Errorf("todo %v %v %v", pgx.ErrNoRows, time.Now(), rows)
}
