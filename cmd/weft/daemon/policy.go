package daemon

import (
	"errors"

	"github.com/spf13/pflag"
)

// policyFlags are the flags of the NetworkPolicy frontend.
type policyFlags struct{}

func (p *policyFlags) add(*pflag.FlagSet, Verb) {}

// hasPolicy reports whether the NetworkPolicy frontend is in this process.
func (d *daemon) hasPolicy() bool { return d.verb == VerbPolicy }

// addPolicy makes the NetworkPolicy frontend.
func (d *daemon) addPolicy() error { return errors.New("the NetworkPolicy frontend is not complete") }
