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
	// ErrUnsupported means that weft does not support an object or operation. The transaction was not
	// sent.
	ErrUnsupported = errors.New("not supported by weft")
	// ErrForeign means that an operation would change an object of another fragment. The transaction
	// was not sent.
	ErrForeign = errors.New("belongs to another fragment")
	// ErrAdopted means that the transaction keeps rules or elements from before a restart of the
	// aggregator, whose text is unknown. Flush or delete the object in the message, or delete the
	// table, in the same transaction; or use LIFETIME_DURABLE.
	ErrAdopted = errors.New("content from before a restart is not known")
	// ErrOutOfStep means that another program publishes a fragment of the same name.
	ErrOutOfStep = errors.New("fragment was changed by another program")
)

type conditionError struct {
	msg string
	// made by knftables, because its type is not exported
	condition error
	cause     error
}

func (e *conditionError) Error() string { return e.msg }

func (e *conditionError) Unwrap() []error {
	if e.cause == nil {
		return []error{e.condition}
	}
	return []error{e.condition, e.cause}
}

func notFound(format string, args ...any) error {
	return &conditionError{msg: fmt.Sprintf(format, args...), condition: missing()}
}

func exists(format string, args ...any) error {
	return &conditionError{msg: fmt.Sprintf(format, args...), condition: present()}
}

func missing() error {
	return fake(func(tx *knftables.Transaction) { tx.Delete(&knftables.Table{}) })
}

func present() error {
	return fake(func(tx *knftables.Transaction) {
		tx.Create(&knftables.Table{})
		tx.Create(&knftables.Table{})
	})
}

func fake(fill func(*knftables.Transaction)) error {
	f := knftables.NewFake(knftables.IPv4Family, "none")
	tx := f.NewTransaction()
	fill(tx)
	return f.Run(context.Background(), tx)
}

// refusal converts a conflict to "already exists", as nft(8) reports "File exists". A rejected
// reference stays: it is to a deleted object, which nft(8) reports as busy.
func refusal(err error) error {
	rejected := (*client.RejectedError)(nil)
	if errors.As(err, &rejected) && rejected.Has(weftv1.Violation_REASON_CONFLICT) {
		return &conditionError{msg: err.Error(), condition: present(), cause: err}
	}
	return err
}
