package admission

import (
	"math"

	"github.com/weft-proxy/weft/aggregator/access"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/compile"
	"github.com/weft-proxy/weft/nft/set"
)

func checkDeclarations(p *access.Publisher, t *tablePart, bad *violations) {
	for _, o := range t.PutObjects {
		refuseClasses(p, nft.ClassSet(0).With(compile.ObjectClass(o.Kind)), ObjectName(t.Table, string(o.Kind), o.Name), bad)
	}
	for _, f := range t.PutFlowtables {
		object := ObjectName(t.Table, string(kindFlowtable), f.Name)
		bad.refused(object, p.Class(nft.ClassFlowtables))
		bad.refused(object, p.Devices(f.Devices))
	}
	for _, s := range t.sets {
		if s.Decl == nil {
			continue
		}
		classes := compile.SetClass(s.Decl)
		if s.Conntrack {
			// The map translates addresses.
			classes = classes.With(nft.ClassNAT)
		}
		refuseSet(p, t.Table, s.Decl, classes, bad)
	}
	for _, e := range t.changes {
		if len(e.add) > 0 && t.setByName[e.Set] == nil {
			refuseSet(p, t.Table, e.Decl, compile.SetClass(e.Decl), bad)
		}
	}
}

func refuseSet(p *access.Publisher, table nft.TableID, decl *set.Set, classes nft.ClassSet, bad *violations) {
	object := setName(table, decl)
	if classes.Has(nft.ClassMarks) {
		// A rule with data of a map can change all bits.
		bad.refused(object, p.Marks(math.MaxUint32))
	}
	refuseClasses(p, classes&^nft.ClassSet(0).With(nft.ClassMarks), object, bad)
}

func refuseClasses(p *access.Publisher, classes nft.ClassSet, object *weftv1.ObjectName, bad *violations) {
	for _, c := range p.Lacks(classes).All() {
		bad.refused(object, p.Class(c))
	}
}

func checkChain(p *access.Publisher, table nft.TableID, c *chainPart, bad *violations) {
	chain := ObjectName(table, "chain", Clip(c.Source.Name))
	if base := c.Decl.Base; base != nil {
		devices := c.Source.Devices
		if c.Source.Device != "" {
			devices = []string{c.Source.Device}
		}
		for _, r := range p.Chain(access.BaseChain{Hook: c.Source.Hook, Type: base.Type, Priority: base.Priority, Drop: base.Drop, Devices: devices}) {
			bad.refused(chain, r)
		}
	}
	// Each chain reports a right once.
	var reported nft.ClassSet
	report := func(i int, class nft.Class, r *access.Refusal) {
		if r == nil || reported.Has(class) {
			return
		}
		reported = reported.With(class)
		object := chain
		if place := c.places[i]; place >= 0 {
			object = ruleName(table, Clip(c.Source.Name), place)
		}
		bad.refused(object, r)
	}
	for i, rule := range c.Rules {
		if bad.full() {
			return
		}
		effects := &rule.Effects
		marks := effects.Mark &^ p.Honoured
		for _, class := range p.Lacks(effects.Classes).All() {
			if class != nft.ClassMarks || marks != 0 {
				report(i, class, p.Class(class))
			}
		}
		if marks != 0 {
			report(i, nft.ClassMarks, p.Marks(marks))
		}
		if effects.LogRate >= compile.UnlimitedLog {
			report(i, nft.ClassLog, p.UnlimitedLog())
		}
	}
}
