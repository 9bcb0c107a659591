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

// The states, the worst last.
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

// Condition is one aspect of the health of a process.
type Condition struct {
	// Name is in Kinds. Required.
	Name string
	// Check returns nil, an error of Degrade if the process still works, or another error if it is not
	// ready. Required.
	Check func() error
}

type degradedError struct{ error }

func (e degradedError) Unwrap() error { return e.error }

// Degrade returns err as an error that does not make the process unready. It keeps a nil err.
func Degrade(err error) error {
	if err == nil {
		return nil
	}
	return degradedError{err}
}

func state(err error) State {
	switch {
	case err == nil:
		return OK
	case errors.As(err, new(degradedError)):
		return Degraded
	}
	return NotReady
}

// Status is a condition at one time.
type Status struct {
	Name  string `json:"name"`
	State State  `json:"state"`
	// when the state was first seen
	Since time.Time `json:"since"`
	// Message is the error in one line, Remedy the action to take. Both are "" for OK.
	Message string `json:"message,omitempty"`
	Remedy  string `json:"remedy,omitempty"`
}

// Process is the list of conditions of a process, and the row of Table.
type Process struct {
	// Process is a verb, Version weft's version.
	Process string `json:"process"`
	Version string `json:"version"`
	// a cause before its effects
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

// State returns the worst state of the conditions.
func (p *Process) State() (worst State) {
	for _, s := range p.Conditions {
		worst = max(worst, s.State)
	}
	return worst
}

// String returns the state and the names of the conditions that are not OK.
func (p *Process) String() string {
	names := cli.Map(p.Wrong(), func(s Status) string { return s.Name })
	text := fmt.Sprintf("weft %s %s: %s", p.Process, p.Version, p.State())
	if len(names) > 0 {
		text += ": " + strings.Join(names, ", ")
	}
	return text
}
