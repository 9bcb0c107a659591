package client

import "time"

// Quick makes what fails be tried again without the waits of production.
func Quick(cfg Config) Config {
	cfg.pace = pace{
		backoff: time.Millisecond, maxBackoff: 4 * time.Millisecond, maxRefused: 8 * time.Millisecond,
		stable: time.Second, retry: time.Millisecond, maxRetry: 8 * time.Millisecond,
	}
	return cfg
}
