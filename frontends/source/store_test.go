package source

import (
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// serviceStore returns a store of Services that delivers to a recorder.
func serviceStore(t testing.TB) (*store, *recorder) {
	t.Helper()
	r := newRecorder()
	return storeOf(t, r.subscribed(serviceKind(r))), r
}

// storeOf returns a store with one user of one kind.
func storeOf(t testing.TB, sub Subscription) *store {
	t.Helper()
	u, err := newUser(sub)
	must(t, err)
	s := newStore()
	s.users = []follower{{u, u.kinds[0]}}
	return s
}

func versioned(name, ip, version string) *corev1.Service {
	s := kubeService(name, ip)
	s.ResourceVersion = version
	return s
}

// TestStore delivers each version once, whether it comes in a list or a watch,
// and reports what a list does not have any more, once.
func TestStore(t *testing.T) {
	s, r := serviceStore(t)
	check := func(step string, err error, batches, gone int) {
		t.Helper()
		if err != nil || r.batches != batches || r.gone != gone {
			t.Errorf("%s: %d batches, %d gone, want %d, %d; error %v", step, r.batches, r.gone, batches, gone, err)
		}
	}
	check("first list", s.Replace([]any{versioned("a", "10.0.0.1", "1"), versioned("b", "10.0.0.2", "2")}, "2"), 1, 0)
	check("duplicate", s.Add(versioned("a", "10.0.0.1", "1")), 1, 0)
	check("duplicate update", s.Update(versioned("b", "10.0.0.2", "2")), 1, 0)
	check("change", s.Update(versioned("a", "10.0.0.3", "3")), 2, 0)
	check("same list", s.Replace([]any{versioned("a", "10.0.0.3", "3"), versioned("b", "10.0.0.2", "2")}, "3"), 2, 0)
	check("list without b", s.Replace([]any{versioned("a", "10.0.0.3", "3")}, "4"), 3, 1)
	check("b is gone again", s.Delete(versioned("b", "", "4")), 3, 1)
	check("a is gone", s.Delete(versioned("a", "", "5")), 4, 2)
	check("a is back", s.Add(versioned("a", "10.0.0.3", "6")), 5, 2)
	check("resync", s.Resync(), 5, 2)
	// An older server may be restored from a backup: what is different counts.
	check("an older version", s.Replace([]any{versioned("a", "10.0.0.4", "2")}, "2"), 6, 2)
	if got := r.objects["Service default/a"]; got != "10.0.0.4" {
		t.Errorf("a is %s", got)
	}
	// Without versions, nothing is known to be a repeat.
	check("no version", s.Add(versioned("c", "10.0.0.5", "")), 7, 2)
	check("no version again", s.Add(versioned("c", "10.0.0.6", "")), 8, 2)
	if len(s.versions) != 2 {
		t.Errorf("versions %v", s.versions)
	}
}

// TestStoreRefuses refuses objects of another kind; a list with such an object
// withdraws nothing.
func TestStoreRefuses(t *testing.T) {
	s, r := serviceStore(t)
	must(t, s.Replace([]any{versioned("a", "10.0.0.1", "1")}, "1"))
	for _, o := range []any{"text", kubeNode("n1")} {
		if s.Add(o) == nil || s.Replace([]any{o}, "2") == nil {
			t.Errorf("%T is taken", o)
		}
	}
	if s.Replace([]any{versioned("b", "10.0.0.2", "2"), "text"}, "2") == nil || r.objects["Service default/b"] == "" {
		t.Error("what comes before an error in a list is forgotten")
	}
	if s.Delete("text") == nil {
		t.Error("text is taken away")
	}
	if r.gone != 0 || len(r.objects) != 2 {
		t.Errorf("%d gone, objects %v", r.gone, r.objects)
	}
}

// TestStoreStreamedList delivers the objects of the first streamed list in batches before its
// end, each version once however often the list begins again, and a later list at its end only.
func TestStoreStreamedList(t *testing.T) {
	s, r := serviceStore(t)
	arrive := func(objects ...*corev1.Service) (list []any) {
		t.Helper()
		for _, o := range objects {
			it, err := s.Transformer()(o)
			must(t, err)
			list = append(list, it)
		}
		return list
	}
	check := func(step string, batches, known, gone int) {
		t.Helper()
		s.delivery.Wait()
		if r.batches != batches || len(r.objects) != known || r.gone != gone {
			t.Errorf("%s: %d batches, %d known, %d gone, want %d, %d, %d", step, r.batches, len(r.objects), r.gone, batches, known, gone)
		}
	}
	services := make([]*corev1.Service, 2*maxArrived+1)
	for i := range services {
		services[i] = versioned("s"+strconv.Itoa(i), "10.0.0.1", "1")
	}
	arrive(services[:maxArrived+1]...)
	check("a list that breaks off", 1, maxArrived, 0)
	// One was deleted, one changed, before the list begins again.
	services[1] = versioned("s1", "10.0.0.2", "2")
	list := arrive(services[1:]...)
	check("again", 2, 2*maxArrived-1, 0)
	if got := r.objects["Service default/s1"]; got != "10.0.0.2" {
		t.Errorf("s1 is %s", got)
	}
	if s.isReady() {
		t.Error("ready before the end of the list")
	}
	must(t, s.Replace(list, "2"))
	check("its end", 4, 2*maxArrived, 1)
	list = arrive(versioned("s1", "10.0.0.3", "3"))
	check("a later list", 4, 2*maxArrived, 1)
	must(t, s.Replace(list, "3"))
	check("the end of the later list", 5, 1, 2*maxArrived)
	if got := r.objects["Service default/s1"]; got != "10.0.0.3" {
		t.Errorf("s1 is %s", got)
	}
	if len(s.versions) != 1 {
		t.Errorf("%d versions", len(s.versions))
	}
}
