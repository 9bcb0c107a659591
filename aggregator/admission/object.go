package admission

import (
	"fmt"
	"slices"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/object"
)

const kindFlowtable nft.ObjectKind = "flowtable"

func (b *Builder) addObject(t *tablePart, o nft.Object) {
	what, ok := b.nameObject(t, object.Ref{Kind: o.Kind, Name: o.Name})
	if !ok {
		return
	}
	if len(o.Text) > MaxRuleText {
		b.bad.add(weftv1.Violation_REASON_LIMIT, what, textTooLong(o.Text))
		return
	}
	if !b.checkTexts(func() *weftv1.ObjectName { return what }, string(o.Kind), o.Text, o.Comment) {
		return
	}
	out, err := object.Compile(t.Table.Family, &o)
	if err != nil {
		b.bad.compile(what, err)
		return
	}
	t.PutObjects = append(t.PutObjects, out)
}

func (b *Builder) addFlowtable(t *tablePart, f nft.Flowtable) {
	what, ok := b.nameObject(t, object.Ref{Kind: kindFlowtable, Name: f.Name})
	if !ok {
		return
	}
	if !b.checkTexts(func() *weftv1.ObjectName { return what }, append([]string{f.Hook, f.Priority}, slices.Concat(f.Devices, f.Flags)...)...) {
		return
	}
	out, err := object.CompileFlowtable(&f)
	if err != nil {
		b.bad.compile(what, err)
		return
	}
	t.PutFlowtables = append(t.PutFlowtables, out)
}

func (b *Builder) nameObject(t *tablePart, ref object.Ref) (*weftv1.ObjectName, bool) {
	if !b.count(&b.objects, 1, MaxObjects, "named objects and flowtables") {
		return nil, false
	}
	return b.claim(t, ref, "")
}

// claim checks a name; advice follows the message for a repeat.
func (b *Builder) claim(t *tablePart, ref object.Ref, advice string) (*weftv1.ObjectName, bool) {
	what := ObjectName(t.Table, Clip(string(ref.Kind)), Clip(ref.Name))
	if err := b.checkName(ref.Name); err != nil {
		b.bad.add(weftv1.Violation_REASON_INVALID, what, err.Error())
		return nil, false
	}
	if t.claimed[ref] {
		b.bad.add(weftv1.Violation_REASON_INVALID, what, "it is declared twice"+advice)
		return nil, false
	}
	if t.claimed == nil {
		t.claimed = make(map[object.Ref]bool)
	}
	t.claimed[ref] = true
	return what, true
}

func (b *Builder) addFlags(t *tablePart, flags []string) {
	for _, f := range flags {
		if f != "dormant" {
			b.bad.add(weftv1.Violation_REASON_INVALID, tableName(t.Table), fmt.Sprintf("unknown table flag %q: the only flag is dormant", Clip(f)))
			continue
		}
		t.Dormant = true
	}
}
