package conditions

import (
	"errors"
	"time"

	"github.com/weft-proxy/weft/cmd/weft/conditions/conditionspb"
)

// State says how a condition is.
type State int

// The states, the worst last.
const (
	OK State = iota
	Degraded
	NotReady
)

// String returns the state as a person reads it.
func (s State) String() string { return [...]string{"ok", "degraded", "not ready"}[s] }

// proto returns the state as a message.
func (s State) proto() conditionspb.State { return conditionspb.State(s) + conditionspb.State_STATE_OK }

// StateOf returns the state of a message. A state that this version does not know is Degraded.
func StateOf(s conditionspb.State) State {
	switch s {
	case conditionspb.State_STATE_OK:
		return OK
	case conditionspb.State_STATE_NOT_READY:
		return NotReady
	}
	return Degraded
}

// Condition is one aspect of a process that is as it should be, or not.
type Condition struct {
	// Name is the same in all versions: alerts name it. Required.
	Name string
	// Check returns nil if all is well, an error of Degrade if the process does its work all
	// the same, and any other error if it is not ready. Required.
	Check func() error
	// Remote is true if the API server is what is wrong: the event is recorded when it answers
	// again.
	Remote bool
}

// degradedError is an error of Degrade.
type degradedError struct{ error }

func (e degradedError) Unwrap() error { return e.error }

// Degrade returns err as an error that does not make the process unready; nil if err is nil.
func Degrade(err error) error {
	if err == nil {
		return nil
	}
	return degradedError{err}
}

// state returns the state that the result of a check means.
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
	Name  string
	State State
	// Message says what is wrong in one line, "" if nothing is.
	Message string
	// Since is when the condition was first seen in this state.
	Since time.Time
}
