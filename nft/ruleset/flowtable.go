package ruleset

import (
	"slices"

	"github.com/weft-proxy/weft/nft"
)

func (p *parser) declareFlowtable(t *table) {
	at := p.Tok
	f := nft.Flowtable{Name: p.name("the name of a flowtable")}
	p.positions.enter(&t.table, "flowtable", f.Name, at.Offset)
	p.block(func() { p.flowtableStatement(&f) })
	p.positions.check(&t.table, "flowtable", f.Name, at.Offset)
	if p.Failed {
		return
	}
	old := t.flowtables.get(f.Name)
	switch {
	case old == nil:
		t.flowtables.add(f.Name, &f)
	case !p.mayExist(at, "flowtable "+f.Name):
	case old.Hook != f.Hook && f.Hook != "", old.Priority != f.Priority && f.Priority != "":
		p.report(at.Offset, "flowtable %s is declared before with another hook or priority", f.Name)
	default:
		for _, name := range f.Devices {
			if !slices.Contains(old.Devices, name) {
				old.Devices = append(old.Devices, name)
			}
		}
		old.Counter = old.Counter || f.Counter
		if f.Flags != nil {
			old.Flags = f.Flags
		}
	}
}

func (p *bodies) flowtableStatement(f *nft.Flowtable) {
	at := p.Tok
	switch word := p.ExpectIdent("hook, devices, counter or flags"); {
	case p.Failed:
	case word == "hook":
		hook := p.ExpectIdent("ingress")
		priority := p.priority()
		p.once(at, "hook", &f.Hook, hook)
		p.once(at, "priority", &f.Priority, priority)
	case word == "devices":
		f.Devices = p.deviceList()
	case word == "counter":
		f.Counter = true
	case word == "flags":
		p.flagsOffload(&f.Flags)
	default:
		p.Fail(at, "unexpected %s in a flowtable: want hook, devices, counter or flags", at)
	}
}
