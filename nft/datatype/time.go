package datatype

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

var durationUnits = []struct {
	name string
	unit time.Duration
}{{"d", 24 * time.Hour}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}, {"ms", time.Millisecond}}

const maxDuration = time.Duration(math.MaxInt64) / 2

// ParseDuration parses 1d2h3m4s5ms, or seconds; each number has at most 32 bits.
func ParseDuration(text string) (time.Duration, error) {
	bad := func() (time.Duration, error) {
		return 0, fmt.Errorf("parse time: %q is not a time such as 1h30m, 5s or 500ms", text)
	}
	rest := text
	if seconds, err := strconv.ParseUint(text, 10, 32); err == nil {
		return time.Duration(seconds) * time.Second, nil
	}
	var total time.Duration
	for _, u := range durationUnits {
		after := strings.TrimLeft(rest, "0123456789")
		tail := strings.TrimLeft(after, "dhms")
		if after[:len(after)-len(tail)] != u.name {
			continue
		}
		value, err := strconv.ParseUint(rest[:len(rest)-len(after)], 10, 32)
		if err != nil || time.Duration(value) > maxDuration/u.unit-total/u.unit {
			return bad()
		}
		total, rest = total+time.Duration(value)*u.unit, tail
	}
	if text == "" || rest != "" {
		return bad()
	}
	return total, nil
}

// FormatDuration formats like nft; below 1 ms, or negative, is "0s".
func FormatDuration(d time.Duration) string {
	if d < time.Millisecond {
		return "0s"
	}
	var out strings.Builder
	for _, u := range durationUnits {
		if n := d / u.unit; n > 0 {
			out.WriteString(strconv.FormatInt(int64(n), 10))
			out.WriteString(u.name)
			d -= n * u.unit
		}
	}
	return out.String()
}

func (t *Type) appendTime(dst []byte, text string) ([]byte, error) {
	d, err := ParseDuration(text)
	if err != nil {
		return dst, err
	}
	ms := d.Milliseconds()
	if ms > math.MaxUint32 {
		return dst, fmt.Errorf("parse time: %s is out of range: the greatest is %s", text, FormatDuration(math.MaxUint32*time.Millisecond))
	}
	return t.AppendUint(dst, uint64(ms), 4), nil
}

func (t *Type) formatTime(b []byte) string {
	return FormatDuration(time.Duration(t.Uint(b)) * time.Millisecond)
}

const secondsPerDay = 24 * 60 * 60

// appendHour parses "15:04", "15:04:05", a time since midnight such as 15h4m, or seconds, all in
// UTC.
func (t *Type) appendHour(dst []byte, text string) ([]byte, error) {
	s := unquote(text)
	if v, err := strconv.ParseUint(s, 10, 32); err == nil {
		return t.AppendUint(dst, v, 4), nil
	}
	if v, ok := clockTime(s); ok {
		return t.AppendUint(dst, v, 4), nil
	}
	if d, err := ParseDuration(s); err == nil {
		return t.AppendUint(dst, uint64(d/time.Second)%secondsPerDay, 4), nil
	}
	return dst, fmt.Errorf("parse hour: %q is not a time of day such as \"17:30\" (UTC)", text)
}

// clockTime returns the seconds since midnight; each number has one or two digits.
func clockTime(s string) (uint64, bool) {
	for _, layout := range [...]string{"15:4", "15:4:5"} {
		// time.Parse accepts fractions of a second
		if at, err := time.Parse(layout, s); err == nil && !strings.ContainsAny(s, ".,") {
			return uint64(at.Hour()*3600 + at.Minute()*60 + at.Second()), true
		}
	}
	return 0, false
}

func parseDigits(s string, n int) (uint64, bool) {
	if s == "" || len(s) > n || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	v, err := strconv.ParseUint(s, 10, 32)
	return v, err == nil
}

func (t *Type) formatHour(b []byte) string {
	v := t.Uint(b)
	if v >= secondsPerDay {
		return strconv.FormatUint(v, 10)
	}
	if v%60 == 0 {
		return fmt.Sprintf(`"%02d:%02d"`, v/3600, v/60%60)
	}
	return fmt.Sprintf(`"%02d:%02d:%02d"`, v/3600, v/60%60, v%60)
}

// appendDate parses a date, with or without a time of day in UTC, or seconds. It appends
// nanoseconds since 1970.
func (t *Type) appendDate(dst []byte, text string) ([]byte, error) {
	s := unquote(text)
	if v, err := strconv.ParseUint(s, 10, 64); err == nil && v <= math.MaxUint64/uint64(time.Second) {
		return t.AppendUint(dst, v*uint64(time.Second), 8), nil
	}
	if v, ok := dateTime(s); ok {
		return t.AppendUint(dst, v*uint64(time.Second), 8), nil
	}
	return dst, fmt.Errorf("parse time: %q is not a date such as \"2026-01-31 17:30\" (UTC)", text)
}

func dateTime(s string) (uint64, bool) {
	day, clock, hasClock := strings.Cut(s, " ")
	seconds := uint64(0)
	if hasClock {
		var ok bool
		if seconds, ok = clockTime(strings.TrimLeft(clock, " ")); !ok {
			return 0, false
		}
	}
	year, rest, _ := strings.Cut(day, "-")
	month, dom, _ := strings.Cut(rest, "-")
	y, ok := parseDigits(year, 4)
	m, okMonth := parseDigits(month, 2)
	d, okDay := parseDigits(dom, 2)
	// nanoseconds since 1970 end in 2554
	if !ok || !okMonth || !okDay || y < 1970 || y > 2553 || m < 1 || m > 12 || d < 1 || d > 31 {
		return 0, false
	}
	at := time.Date(int(y), time.Month(m), int(d), 0, 0, 0, 0, time.UTC)
	return uint64(at.Unix()) + seconds, true
}

func (t *Type) formatDate(b []byte) string {
	v := t.Uint(b)
	return `"` + time.Unix(int64(v/uint64(time.Second)), 0).UTC().Format(time.DateTime) + `"`
}
