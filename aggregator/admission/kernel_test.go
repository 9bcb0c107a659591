package admission

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/compile"
	"github.com/weft-proxy/weft/nft/kernel"
	"github.com/weft-proxy/weft/nft/object"
	"github.com/weft-proxy/weft/nft/set"
)

// TestKernelRejection has the refusals of the kernel for which there is advice, and some for
// which there is none.
func TestKernelRejection(t *testing.T) {
	table := nft.TableID{Family: nft.FamilyIP, Name: "t"}
	rule := kernel.AddRule{Table: table, Chain: "c", Rule: &compile.Rule{}}
	elements := kernel.AddElements{Table: table, Set: &set.Set{Name: "s"}}
	counter := kernel.AddObject{Table: table, Object: &object.Object{Kind: "ct helper", Name: "o"}}
	flowtable := kernel.AddFlowtable{Table: table, Flowtable: &object.Flowtable{Name: "f"}}
	for _, tt := range []struct {
		op     kernel.Op
		errno  syscall.Errno
		object string
		advice string
	}{
		{kernel.AddTable{Table: table}, syscall.EOPNOTSUPP, "table ip t", ": its flags cannot change together with its base chains"},
		{kernel.AddTable{Table: table}, syscall.EPERM, "table ip t", ""},
		{counter, syscall.ENOENT, "ct helper ip t o", ": the kernel has no ct helper like this (perhaps a module is not loaded)"},
		{counter, syscall.EOPNOTSUPP, "ct helper ip t o", ": the kernel has no ct helper like this"},
		{counter, syscall.EBUSY, "ct helper ip t o", ""},
		{flowtable, syscall.ENOENT, "flowtable ip t f", ": a device does not exist, or the kernel has no flowtables for this family"},
		{flowtable, syscall.EOPNOTSUPP, "flowtable ip t f", ": the kernel has no flowtables (module nf_flow_table)"},
		{flowtable, syscall.EINVAL, "flowtable ip t f", ": the kernel has no flowtables (module nf_flow_table)"},
		{flowtable, syscall.EEXIST, "flowtable ip t f", ""},
		{elements, syscall.EEXIST, "set ip t s", ": it overlaps another element, or repeats one with another value"},
		{elements, syscall.ENFILE, "set ip t s", ": the set is full: raise its size"},
		{elements, syscall.ELOOP, "set ip t s", loopAdvice},
		{elements, syscall.ENOMEM, "set ip t s", ""},
		{rule, syscall.EOPNOTSUPP, "rule ip t c", ": a statement is not possible at this chain's type and hook"},
		{rule, syscall.EMLINK, "rule ip t c", loopAdvice},
		{rule, syscall.EINVAL, "rule ip t c", ""},
		{kernel.DeleteSet{Table: table, Name: "s"}, syscall.EBUSY, "set ip t s", ""},
	} {
		r := KernelRejection(desired.Key{Publisher: "p", Name: "f"}, &kernel.BatchError{Op: tt.op, Errno: tt.errno})
		v := r.Violations[0]
		if len(r.Violations) != 1 || v.GetReason() != weftv1.Violation_REASON_KERNEL || v.GetObject().Text() != tt.object {
			t.Errorf("%T and %v: %v", tt.op, tt.errno, r)
		}
		if !strings.HasPrefix(v.GetMessage(), "the kernel refuses it: ") || !strings.Contains(v.GetMessage(), tt.advice) ||
			tt.advice == "" && strings.HasSuffix(v.GetMessage(), ")") {
			t.Errorf("%T and %v: %s, want the advice %q", tt.op, tt.errno, v.GetMessage(), tt.advice)
		}
		if tt.advice == "" {
			if advice := adviceOn(&kernel.BatchError{Op: tt.op, Errno: tt.errno}); advice != "" {
				t.Errorf("%T and %v: advice %q", tt.op, tt.errno, advice)
			}
		}
	}
	r := KernelRejection(desired.Key{Publisher: "p", Name: "f"}, errors.New("too large"))
	if got := r.Error(); got != "fragment p/f rejected: the kernel refuses it: too large" {
		t.Errorf("error %s", got)
	}
}
