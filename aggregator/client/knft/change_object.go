package knft

import (
	"google.golang.org/protobuf/proto"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
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

// declareObject adds or creates a counter or flowtable. As in nft(8), one that is
// there keeps its declaration.
func (c *change) declareObject(cmd *command, t *table) error {
	id := objectID{cmd.kind, cmd.name}
	parsed, err := parseDeclaration(cmd)
	if err != nil {
		return err
	}
	var d declared
	if cmd.kind == kindCounter {
		d.counter = parsed.GetObjects()[0]
	} else {
		d.flowtable = parsed.GetFlowtables()[0]
	}
	there := t.objects[id] != (declared{})
	if err := c.unique(cmd, there); err != nil || there {
		return err
	}
	assign(c, t.objects, id, d)
	c.touch(t.id).objects[id] = true
	return nil
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
