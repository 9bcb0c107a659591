package specs

import (
	_ "embed"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

const prefix = "[sig-network] "

//go:embed skip.txt
var skipText string

//go:embed known.txt
var knownText string

//go:embed short.txt
var shortText string

// Skip is a kind of skipped specs.
type Skip struct {
	// Pattern is a part of full names.
	Pattern string
	// Reason is a sentence.
	Reason string
}

// Skips returns skip.txt.
func Skips() ([]Skip, error) { return parse("skip.txt", skipText) }

// Known returns known.txt: specs that run and fail, with reasons.
func Known() ([]Skip, error) { return parse("known.txt", knownText) }

// OfNetwork reports whether a full name is a sig-network spec's.
func OfNetwork(name string) bool { return strings.HasPrefix(name, prefix) }

// NeedsPolicy reports whether a spec needs a NetworkPolicy engine.
func NeedsPolicy(name string) bool { return strings.Contains(name, "[Feature:NetworkPolicy]") }

// Reason returns why a spec is skipped; false means that it runs.
func Reason(skips []Skip, name string) (string, bool) {
	i := slices.IndexFunc(skips, func(s Skip) bool { return strings.Contains(name, s.Pattern) })
	if i < 0 {
		return "", false
	}
	return skips[i].Reason, true
}

func parse(file, text string) ([]Skip, error) {
	var skips []Skip
	reason, used := "", true
	for i, line := range strings.Split(text, "\n") {
		pattern := strings.TrimSpace(line)
		switch {
		case pattern == "" || strings.HasPrefix(line, "#"):
		case pattern == line:
			if !used {
				return nil, fmt.Errorf("%s:%d: the reason %q has no pattern", file, i+1, reason)
			}
			reason, used = line, false
		case reason == "":
			return nil, fmt.Errorf("%s:%d: the pattern %q has no reason", file, i+1, pattern)
		default:
			skips, used = append(skips, Skip{Pattern: pattern, Reason: reason}), true
		}
	}
	if !used {
		return nil, fmt.Errorf("%s: the reason %q has no pattern", file, reason)
	}
	return skips, nil
}

// Short returns the full names of short.txt.
func Short() []string {
	var names []string
	for line := range strings.Lines(shortText) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			names = append(names, line)
		}
	}
	return names
}

func check(names []string, skips []Skip, short []string) error {
	var errs []error
	for _, s := range skips {
		if !slices.ContainsFunc(names, func(name string) bool { return strings.Contains(name, s.Pattern) }) {
			errs = append(errs, fmt.Errorf("skip.txt: no spec has %q in its name", s.Pattern))
		}
	}
	for _, s := range short {
		if !slices.Contains(names, s) {
			errs = append(errs, fmt.Errorf("short.txt: there is no spec %q", s))
		}
		if reason, skipped := Reason(skips, s); skipped {
			errs = append(errs, fmt.Errorf("short.txt: %q is in skip.txt: %s", s, reason))
		}
	}
	return errors.Join(errs...)
}

// choose keeps the order of all.
func (c *Config) choose(all []string, skips []Skip) ([]string, error) {
	focus, err := regexp.Compile(c.Focus)
	if err != nil {
		return nil, fmt.Errorf("focus: %w", err)
	}
	short := Short()
	var chosen []string
	for _, name := range all {
		_, skipped := Reason(skips, name)
		switch {
		case skipped, !focus.MatchString(name),
			c.NoPolicy && NeedsPolicy(name),
			c.Short && !slices.Contains(short, name):
		default:
			chosen = append(chosen, name)
		}
	}
	if len(chosen) == 0 {
		return nil, errors.New("no spec is left to run: the focus and the lists exclude all")
	}
	return chosen, nil
}

// ginkgo puts the suite's name before a spec's.
func expression(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = regexp.QuoteMeta(name)
	}
	return " (" + strings.Join(quoted, "|") + ")$"
}
