package admission

import (
	"errors"
	"fmt"
	"math"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/nft/printable"
)

// checkTexts exempts the state directory, because an older version accepted its strings.
func (b *Builder) checkTexts(what func() *weftv1.ObjectName, texts ...string) bool {
	for _, text := range texts {
		if err := b.checkText(text); err != nil {
			b.bad.add(weftv1.Violation_REASON_INVALID, what(), err.Error())
			return false
		}
	}
	return true
}

func (s *sender) checkText(text string) error {
	if s.cfg.Stored {
		return nil
	}
	if len(text) > MaxRuleText {
		return errors.New(textTooLong(text))
	}
	if err := printable.Check(text); err != nil {
		return fmt.Errorf("text %s: %w", Quote(text), err)
	}
	return nil
}

func (s *sender) checkElement(e *weftv1.Element) error {
	if len(e.GetKey()) > MaxElementText || len(e.GetValue()) > MaxElementText {
		return errTooLong
	}
	for _, text := range [...]string{e.GetKey(), e.GetValue(), e.GetComment()} {
		if err := s.checkText(text); err != nil {
			return err
		}
	}
	for _, text := range e.GetState().GetStateful() {
		if err := s.checkText(text); err != nil {
			return err
		}
	}
	if err := checkDuration("expires", e.GetState().GetExpires()); err != nil {
		return err
	}
	return checkDuration("timeout", e.GetTimeout())
}

// checkDuration rejects a duration that is negative, or overflows the 292 years of a time.Duration.
func checkDuration(what string, d *durationpb.Duration) error {
	switch {
	case d == nil:
		return nil
	case d.CheckValid() != nil || d.AsDuration() == math.MaxInt64 || d.AsDuration() == math.MinInt64:
		return fmt.Errorf("%s of %d seconds is too long: at most %d are possible", what, d.GetSeconds(), int64(math.MaxInt64/time.Second))
	case d.AsDuration() < 0:
		return fmt.Errorf("%s %v is negative", what, d.AsDuration())
	default:
		return nil
	}
}
