package aggregator

import (
	"fmt"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/compile"
)

// kindFlowtable is the word for flowtables where objects are named by their kind.
const kindFlowtable nft.ObjectKind = "flowtable"

// objectsAdmission is what an update declares and gives up of named objects and
// flowtables in a table.
type objectsAdmission struct {
	objects          []*compile.Object
	deleteObjects    []compile.ObjectRef
	flowtables       []*compile.Flowtable
	deleteFlowtables []string
	// seen are those that are declared, for what is declared twice.
	seen map[compile.ObjectRef]bool
}

// addObjects adds the objects and flowtables of a message.
func (a *admission) addObjects(t *tableAdmission, objects []*weftv1.Object, flowtables []*weftv1.Flowtable) {
	for _, o := range objects {
		a.addObject(t, objectOfMessage(o))
	}
	for _, f := range flowtables {
		a.addFlowtable(t, flowtableOf(f))
	}
}

// deleteObjects adds what a patch gives up.
func (a *admission) deleteObjects(t *tableAdmission, m *weftv1.TablePatch) {
	for _, n := range m.GetDeleteObjects() {
		t.deleteObjects = append(t.deleteObjects, objectRef(n))
	}
	t.deleteFlowtables = append(t.deleteFlowtables, m.GetDeleteFlowtables()...)
}

// addObject compiles the declaration of an object.
func (a *admission) addObject(t *tableAdmission, o nft.Object) {
	object, ok := a.nameObject(t, compile.ObjectRef{Kind: o.Kind, Name: o.Name})
	if !ok {
		return
	}
	if len(o.Text) > MaxRuleText {
		a.bad.add(weftv1.Reason_REASON_LIMIT, object, fmt.Sprintf("text has %d bytes: at most %d are allowed", len(o.Text), MaxRuleText))
		return
	}
	out, err := compile.CompileObject(t.id.Family, &o)
	if err != nil {
		a.bad.compile(object, err)
		return
	}
	t.objects = append(t.objects, out)
}

// addFlowtable compiles the declaration of a flowtable.
func (a *admission) addFlowtable(t *tableAdmission, f nft.Flowtable) {
	object, ok := a.nameObject(t, compile.ObjectRef{Kind: kindFlowtable, Name: f.Name})
	if !ok {
		return
	}
	out, err := compile.CompileFlowtable(&f)
	if err != nil {
		a.bad.compile(object, err)
		return
	}
	t.flowtables = append(t.flowtables, out)
}

// nameObject counts an object and checks its name; it returns what violations call
// it.
func (a *admission) nameObject(t *tableAdmission, ref compile.ObjectRef) (string, bool) {
	if !a.count(&a.objects, 1, MaxObjects, "named objects and flowtables") {
		return "", false
	}
	object := fmt.Sprintf("table %s %s %s", t.id, clip(string(ref.Kind)), clip(ref.Name))
	if err := checkName(ref.Name); err != nil {
		a.bad.add(weftv1.Reason_REASON_INVALID, object, err.Error())
		return "", false
	}
	if t.seen[ref] {
		a.bad.add(weftv1.Reason_REASON_INVALID, object, "it is declared twice")
		return "", false
	}
	if t.seen == nil {
		t.seen = make(map[compile.ObjectRef]bool)
	}
	t.seen[ref] = true
	return object, true
}

// addFlags adds the flags of a table.
func (a *admission) addFlags(t *tableAdmission, flags []string) {
	for _, f := range flags {
		if f != "dormant" {
			a.bad.add(weftv1.Reason_REASON_INVALID, "table "+t.id.String(), fmt.Sprintf("flag %q: a table can be dormant, and nothing else", clip(f)))
			continue
		}
		t.dormant = true
	}
}

func objectRef(m *weftv1.ObjectName) compile.ObjectRef {
	return compile.ObjectRef{Kind: nft.ObjectKind(m.GetKind()), Name: m.GetName()}
}

// objectOfMessage and flowtableOf turn messages into nft's objects, and
// objectMessage and flowtableMessage what is compiled back into messages.
func objectOfMessage(m *weftv1.Object) nft.Object {
	return nft.Object{Kind: nft.ObjectKind(m.GetKind()), Name: m.GetName(), Text: m.GetText(), Comment: m.GetComment()}
}

func flowtableOf(m *weftv1.Flowtable) nft.Flowtable {
	return nft.Flowtable{
		Name: m.GetName(), Hook: m.GetHook(), Priority: m.GetPriority(), Devices: m.GetDevices(), Flags: m.GetFlags(), Counter: m.GetCounter(),
	}
}

func objectMessage(o *compile.Object) *weftv1.Object {
	d := o.Declaration()
	return &weftv1.Object{Kind: string(d.Kind), Name: d.Name, Text: d.Text, Comment: d.Comment}
}

func flowtableMessage(f *compile.Flowtable) *weftv1.Flowtable {
	d := f.Declaration()
	return &weftv1.Flowtable{Name: d.Name, Hook: d.Hook, Priority: d.Priority, Devices: d.Devices, Flags: d.Flags, Counter: d.Counter}
}

// flagsMessage are the flags of a table.
func flagsMessage(dormant bool) []string {
	if dormant {
		return []string{"dormant"}
	}
	return nil
}
