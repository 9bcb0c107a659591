package entries

import (
	"slices"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

// Writer holds the entries of a fragment. It keeps its first error and then ignores calls.
type Writer interface {
	Has(key string) bool
	Put(e Entry)
	Delete(key string)
	// DeleteBelow leaves key itself.
	DeleteBelow(key string)
}

// Patch applies the patch of a table.
func Patch(w Writer, t *weftv1.TablePatch) {
	table := Key(t.GetFamily(), t.GetName())
	if !w.Has(table) {
		w.Put(Entry{table, &weftv1.Table{}})
	}
	for _, o := range t.GetDeleteObjects() {
		w.Delete(Key(table, "object", o.GetKind(), o.GetName()))
	}
	for _, name := range t.GetDeleteFlowtables() {
		w.Delete(Key(table, "flowtable", name))
	}
	for _, name := range t.GetDeleteChains() {
		w.Delete(Key(table, "chain", name))
	}
	for _, name := range t.GetDeleteSets() {
		deleteSet(w, Key(table, "set", name))
	}
	declared := &weftv1.Table{
		Chains: t.GetPutChains(), Sets: t.GetPutSets(), Maps: t.GetPutMaps(), Objects: t.GetPutObjects(), Flowtables: t.GetPutFlowtables(),
	}
	for _, s := range slices.Concat(t.GetPutSets(), t.GetPutMaps()) {
		deleteSet(w, Key(table, "set", s.GetName()))
	}
	for _, e := range tableEntries(table, declared) {
		w.Put(e)
	}
	for _, e := range t.GetElements() {
		set := Key(table, "set", e.GetSet())
		for _, key := range e.GetRemove() {
			w.Delete(Key(set, key))
		}
		for _, added := range e.GetAdd() {
			w.Put(Entry{Key(set, added.GetKey()), added})
		}
	}
}

func deleteSet(w Writer, key string) {
	w.Delete(key)
	w.DeleteBelow(key)
}
