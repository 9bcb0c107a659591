package compile

import (
	"reflect"

	google "github.com/google/nftables/expr"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/syntax"
)

// kind is a kind of statements. A new statement is a row of kinds and a file with its method.
type kind struct {
	// 0 if the class depends on the statement
	class   nft.Class
	compile func(r *ruleCompiler, s syntax.Stmt)
	// terminal statements end the rule: later statements never run.
	terminal bool
}

var kinds = map[reflect.Type]kind{
	reflect.TypeFor[*syntax.Match]():       of(nft.ClassFilter, (*ruleCompiler).match),
	reflect.TypeFor[*syntax.Verdict]():     of(nft.ClassFilter, (*ruleCompiler).verdictStmt),
	reflect.TypeFor[*syntax.Vmap]():        of(nft.ClassFilter, (*ruleCompiler).vmap),
	reflect.TypeFor[*syntax.Counter]():     of(nft.ClassFilter, stateful[*syntax.Counter]),
	reflect.TypeFor[*syntax.Limit]():       of(nft.ClassFilter, stateful[*syntax.Limit]),
	reflect.TypeFor[*syntax.Quota]():       of(nft.ClassFilter, stateful[*syntax.Quota]),
	reflect.TypeFor[*syntax.ConnLimit]():   of(nft.ClassFilter, stateful[*syntax.ConnLimit]),
	reflect.TypeFor[*syntax.Meter]():       of(nft.ClassFilter, (*ruleCompiler).meter),
	reflect.TypeFor[*syntax.Log]():         of(nft.ClassLog, (*ruleCompiler).log),
	reflect.TypeFor[*syntax.Reject]():      of(nft.ClassFilter, (*ruleCompiler).reject).last(),
	reflect.TypeFor[*syntax.NAT]():         of(nft.ClassNAT, (*ruleCompiler).nat).last(),
	reflect.TypeFor[*syntax.TProxy]():      of(nft.ClassNAT, (*ruleCompiler).tproxy),
	reflect.TypeFor[*syntax.Assign]():      of(0, (*ruleCompiler).assign),
	reflect.TypeFor[*syntax.ResetOption](): of(nft.ClassMangle, (*ruleCompiler).resetOption),
	reflect.TypeFor[*syntax.Dynamic]():     of(0, (*ruleCompiler).dynamic),
	reflect.TypeFor[*syntax.ObjectRef]():   of(0, (*ruleCompiler).objectRef),
	reflect.TypeFor[*syntax.Queue]():       of(nft.ClassQueue, (*ruleCompiler).queue).last(),
	reflect.TypeFor[*syntax.Dup]():         of(nft.ClassDup, (*ruleCompiler).dup),
	reflect.TypeFor[*syntax.Fwd]():         of(nft.ClassFwd, (*ruleCompiler).fwd).last(),
	reflect.TypeFor[*syntax.SynProxy]():    of(nft.ClassSynProxy, (*ruleCompiler).synproxy),
	reflect.TypeFor[*syntax.FlowAdd]():     of(nft.ClassFlowtables, (*ruleCompiler).flowAdd),
	reflect.TypeFor[*syntax.Notrack](): of(nft.ClassConntrack, func(r *ruleCompiler, _ *syntax.Notrack) {
		r.addLibrary(&google.Notrack{})
	}),
}

func of[S syntax.Stmt](class nft.Class, compile func(*ruleCompiler, S)) kind {
	return kind{class: class, compile: func(r *ruleCompiler, s syntax.Stmt) { compile(r, s.(S)) }} //nolint:forcetypeassert // kinds has the type
}

func (k kind) last() kind {
	k.terminal = true
	return k
}

func (k kind) ends(s syntax.Stmt) bool {
	v, ok := s.(*syntax.Verdict)
	return k.terminal || ok && v.Kind != "continue"
}
