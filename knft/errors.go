package knft

import (
	"context"
	"errors"
	"fmt"

	"sigs.k8s.io/knftables"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
)

var (
	// ErrUnsupported means that weft has no form for an object or operation;
	// the message names it. Nothing was sent.
	ErrUnsupported = errors.New("not supported by weft")
	// ErrForeign means that an operation would change what belongs to another
	// fragment; the message names the fragment. Nothing was sent.
	ErrForeign = errors.New("belongs to another fragment")
	// ErrAdopted means that the fragment was committed before a restart of the
	// aggregator, and that rules or elements of it, which the transaction
	// leaves in place, are not known in words. Flush or delete what the message
	// names, or delete the table, in the same transaction; or use
	// LIFETIME_DURABLE, whose content is kept.
	ErrAdopted = errors.New("content from before a restart is not known")
	// ErrOutOfStep means that the aggregator holds something else than what
	// this adapter published: another program publishes a fragment of the same
	// name.
	ErrOutOfStep = errors.New("fragment was changed by another program")
)

// conditionError is an error that knftables.IsNotFound or IsAlreadyExists
// recognises.
type conditionError struct {
	msg string
	// condition is an error that knftables made: its type is not exported, and
	// nothing else makes its functions answer true.
	condition error
	// cause is what the aggregator said, if it did.
	cause error
}

func (e *conditionError) Error() string { return e.msg }

func (e *conditionError) Unwrap() []error {
	if e.cause == nil {
		return []error{e.condition}
	}
	return []error{e.condition, e.cause}
}

// notFound returns an error for which knftables.IsNotFound is true.
func notFound(format string, args ...any) error {
	return &conditionError{msg: fmt.Sprintf(format, args...), condition: missing()}
}

// exists returns an error for which knftables.IsAlreadyExists is true.
func exists(format string, args ...any) error {
	return &conditionError{msg: fmt.Sprintf(format, args...), condition: present()}
}

// missing returns the "not found" error of knftables.
func missing() error {
	return fake(func(tx *knftables.Transaction) { tx.Delete(&knftables.Table{}) })
}

// present returns the "already exists" error of knftables.
func present() error {
	return fake(func(tx *knftables.Transaction) {
		tx.Create(&knftables.Table{})
		tx.Create(&knftables.Table{})
	})
}

// fake returns what knftables makes of a transaction on an empty ruleset.
func fake(fill func(*knftables.Transaction)) error {
	f := knftables.NewFake(knftables.IPv4Family, "none")
	tx := f.NewTransaction()
	fill(tx)
	return f.Run(context.Background(), tx)
}

// refusal gives the aggregator's refusal of a contradicting declaration the
// condition that nft(8) reports, "File exists". What does not exist was found
// before anything was sent; a refused reference is to something that goes, which
// nft(8) calls busy.
func refusal(err error) error {
	rejected := (*client.RejectedError)(nil)
	if errors.As(err, &rejected) && rejected.Has(weftv1.Violation_REASON_CONFLICT) {
		return &conditionError{msg: err.Error(), condition: present(), cause: err}
	}
	return err
}
