package datatype

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// maxDuration keeps ParseDuration's arithmetic far from overflow.
const maxDuration = time.Duration(math.MaxInt64) / 2

// ParseDuration reads a time as nft writes it: days, hours, minutes, seconds
// and milliseconds in this order, each with its unit (1d2h3m4s5ms), or a bare
// number of seconds.
func ParseDuration(text string) (time.Duration, error) {
	bad := func() (time.Duration, error) {
		return 0, fmt.Errorf("parse time: %q is no time such as 1h30m, 5s or 500ms", text)
	}
	rest := text
	if seconds, err := strconv.ParseUint(text, 10, 32); err == nil {
		return time.Duration(seconds) * time.Second, nil
	}
	units := []struct {
		name string
		unit time.Duration
	}{{"d", 24 * time.Hour}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}, {"ms", time.Millisecond}}
	var total time.Duration
	next := 0
	for rest != "" {
		i := 0
		for i < len(rest) && rest[i] >= '0' && rest[i] <= '9' {
			i++
		}
		value, err := strconv.ParseUint(rest[:i], 10, 32)
		if err != nil {
			return bad()
		}
		j := i
		for j < len(rest) && (rest[j] < '0' || rest[j] > '9') {
			j++
		}
		unit := -1
		for k := next; k < len(units); k++ {
			if units[k].name == rest[i:j] {
				unit = k
			}
		}
		if unit < 0 || time.Duration(value) > maxDuration/units[unit].unit-total/units[unit].unit {
			return bad()
		}
		total += time.Duration(value) * units[unit].unit
		next, rest = unit+1, rest[j:]
	}
	if text == "" {
		return bad()
	}
	return total, nil
}

// FormatDuration writes a time as nft does, down to milliseconds.
func FormatDuration(d time.Duration) string {
	if d < time.Millisecond {
		return "0s"
	}
	var out strings.Builder
	for _, u := range []struct {
		name string
		unit time.Duration
	}{{"d", 24 * time.Hour}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}, {"ms", time.Millisecond}} {
		if n := d / u.unit; n > 0 {
			out.WriteString(strconv.FormatInt(int64(n), 10))
			out.WriteString(u.name)
			d -= n * u.unit
		}
	}
	return out.String()
}

// appendTime packs a relative time in milliseconds.
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

// appendHour packs a time of day, "15:04" or "15:04:05" in UTC, as seconds.
func (t *Type) appendHour(dst []byte, text string) ([]byte, error) {
	s := unquote(text)
	clock, err := time.Parse(time.TimeOnly, s)
	if err != nil {
		clock, err = time.Parse("15:04", s)
	}
	if err != nil {
		if v, ok := parseSmall(s, 24*60*60); ok {
			return t.AppendUint(dst, v, 4), nil
		}
		return dst, fmt.Errorf("parse hour: %q is no time of day such as 17:30 (UTC)", text)
	}
	return t.AppendUint(dst, uint64(clock.Hour()*3600+clock.Minute()*60+clock.Second()), 4), nil
}

func parseSmall(s string, limit uint64) (uint64, bool) {
	v, err := strconv.ParseUint(s, 10, 32)
	return v, err == nil && v < limit
}

func (t *Type) formatHour(b []byte) string {
	v := t.Uint(b)
	if v%60 == 0 {
		return fmt.Sprintf(`"%02d:%02d"`, v/3600, v/60%60)
	}
	return fmt.Sprintf(`"%02d:%02d:%02d"`, v/3600, v/60%60, v%60)
}

// appendDate packs a point in time in UTC as nanoseconds since 1970.
func (t *Type) appendDate(dst []byte, text string) ([]byte, error) {
	s := unquote(text)
	if v, err := strconv.ParseUint(s, 10, 64); err == nil && v < math.MaxInt64/uint64(time.Second) {
		return t.AppendUint(dst, v*uint64(time.Second), 8), nil
	}
	for _, layout := range []string{time.DateTime, "2006-01-02 15:04", time.DateOnly} {
		if at, err := time.Parse(layout, s); err == nil && at.Year() >= 1970 && at.Year() < 2262 {
			return t.AppendUint(dst, uint64(at.UnixNano()), 8), nil
		}
	}
	return dst, fmt.Errorf("parse time: %q is no date such as \"2026-01-31 17:30\" (UTC)", text)
}

func (t *Type) formatDate(b []byte) string {
	v := t.Uint(b)
	if v > math.MaxInt64 {
		return strconv.FormatUint(v/uint64(time.Second), 10)
	}
	return `"` + time.Unix(0, int64(v)).UTC().Format(time.DateTime) + `"`
}
