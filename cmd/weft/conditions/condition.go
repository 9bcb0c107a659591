package conditions

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weft-proxy/weft/cmd/weft/cli"
)

// State of a condition.
type State int

// The worst state is last.
const (
	OK State = iota
	Degraded
	NotReady
)

var stateNames = [...]string{"ok", "degraded", "not ready"}

// String returns the state for people.
func (s State) String() string { return stateNames[s] }

// MarshalText implements encoding.TextMarshaler.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *State) UnmarshalText(text []byte) error {
	*s = State(slices.Index(stateNames[:], string(text)))
	if *s < 0 {
		return fmt.Errorf("read the state of a condition: %q is not one of %s", text, strings.Join(stateNames[:], ", "))
	}
	return nil
}

// Condition is an aspect of a process's health.
type Condition struct {
	// Name is in Kinds.
	Name string
	// NotReady returns an error while the process does not work, Degraded while it works with a
	// problem. Either may be nil.
	NotReady, Degraded func() error
}

func (c *Condition) check() (State, error) {
	if c.NotReady != nil {
		if err := c.NotReady(); err != nil {
			return NotReady, err
		}
	}
	if c.Degraded != nil {
		if err := c.Degraded(); err != nil {
			return Degraded, err
		}
	}
	return OK, nil
}

// Status is a condition at one time.
type Status struct {
	Name  string `json:"name"`
	State State  `json:"state"`
	// Since is when a look first found this state.
	Since time.Time `json:"since"`
	// Both are "" for OK: the error in one line, and the action to take.
	Message string `json:"message,omitempty"`
	Remedy  string `json:"remedy,omitempty"`
}

// Process has the conditions of a process.
type Process struct {
	// Process is the verb, such as "run"; Version is weft's.
	Process string `json:"process"`
	Version string `json:"version"`
	// A cause precedes its effects.
	Conditions []Status `json:"conditions"`
}

// Wrong returns the conditions that are not OK.
func (p *Process) Wrong() []Status {
	return slices.DeleteFunc(slices.Clone(p.Conditions), func(s Status) bool { return s.State == OK })
}

// Ready returns an error with the conditions that are not ready, or nil.
func (p *Process) Ready() error {
	var errs []string
	for _, s := range p.Conditions {
		if s.State == NotReady {
			errs = append(errs, s.Name+": "+s.Message)
		}
	}
	if errs == nil {
		return nil
	}
	return errors.New(strings.Join(errs, "; "))
}

// State returns the worst state.
func (p *Process) State() (worst State) {
	for _, s := range p.Conditions {
		worst = max(worst, s.State)
	}
	return worst
}

// String names the state and the conditions that are not OK.
func (p *Process) String() string {
	names := cli.Map(p.Wrong(), func(s Status) string { return s.Name })
	text := fmt.Sprintf("weft %s %s: %s", p.Process, p.Version, p.State())
	if len(names) > 0 {
		text += ": " + strings.Join(names, ", ")
	}
	return text
}
