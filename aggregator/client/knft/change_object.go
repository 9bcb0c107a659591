package knft

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/convert"
)

// objectID names a counter or flowtable in its table.
type objectID struct {
	kind kind
	name string
}

// declared is a counter or a flowtable of the fragment; the other is nil.
type declared struct {
	counter   *weftv1.Object
	flowtable *weftv1.Flowtable
}

// object makes an operation on a counter or flowtable.
func (c *change) object(cmd *command) error {
	id := objectID{cmd.kind, cmd.name}
	switch cmd.verb {
	case verbAdd, verbCreate:
		return c.declareObject(cmd, id)
	case verbDelete, verbDestroy:
	default:
		return fmt.Errorf("%s of a %s: %w", cmd.verb, cmd.kind, ErrUnsupported)
	}
	t := c.ownTable(cmd)
	if t.objects[id] == (declared{}) {
		return c.absent(cmd)
	}
	c.setObject(t, id, declared{})
	return nil
}

// declareObject adds or creates a counter or flowtable. As in nft(8), one that is
// there keeps its declaration.
func (c *change) declareObject(cmd *command, id objectID) error {
	t, err := c.hold(cmd.table)
	if err != nil {
		return err
	}
	d, err := parseObject(cmd)
	if err != nil {
		return err
	}
	there := t.objects[id] != (declared{})
	if err := c.unique(cmd, there); err != nil {
		return err
	}
	if !there {
		c.setObject(t, id, d)
	}
	return nil
}

// setObject gives the fragment a counter or flowtable, or takes it away.
func (c *change) setObject(t *table, id objectID, d declared) {
	old := t.objects[id]
	t.putObject(id, d)
	c.undo = append(c.undo, func() { t.putObject(id, old) })
	c.touch(t.id).objects[id] = true
}

// parseObject reads the declaration of a counter or flowtable.
func parseObject(cmd *command) (declared, error) {
	body := cmd.rest
	if body == "" {
		body = "{ }"
	}
	t, err := parseDeclaration(cmd, body)
	if err != nil {
		return declared{}, err
	}
	switch {
	case len(t.Objects) == 1 && cmd.kind == kindCounter:
		return declared{counter: convert.Object(t.Objects[0])}, nil
	case len(t.Flowtables) == 1 && cmd.kind == kindFlowtable:
		return declared{flowtable: convert.Flowtable(t.Flowtables[0])}, nil
	}
	return declared{}, fmt.Errorf("malformed declaration of a %s", cmd.kind)
}

// putObject notes a counter or flowtable, or that there is none of that name.
func (t *table) putObject(id objectID, d declared) {
	if d == (declared{}) {
		delete(t.objects, id)
		return
	}
	t.objects[id] = d
}

// readObjects takes over the counters and flowtables of a table of the wire.
func (t *table) readObjects(m *weftv1.Table) {
	for _, o := range m.GetObjects() {
		t.objects[objectID{kind(o.GetKind()), o.GetName()}] = declared{counter: proto.CloneOf(o)}
	}
	for _, f := range m.GetFlowtables() {
		t.objects[objectID{kindFlowtable, f.GetName()}] = declared{flowtable: proto.CloneOf(f)}
	}
}
