package aggregator

// Healthy returns why updates can not be committed now: the aggregator stands
// by or has stopped. Starting up counts as healthy.
//
// Possible errors: ErrStandby, ErrStopped.
func (a *Aggregator) Healthy() error { return a.condition() }
