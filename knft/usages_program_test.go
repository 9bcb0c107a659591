package knft_test

import (
	"fmt"

	"sigs.k8s.io/knftables"
)

// programUsages are modelled on the life of a service proxy.
func programUsages() []usage {
	services := func(tx *knftables.Transaction, n int) {
		for i := range n {
			chain := fmt.Sprintf("service-%d", i)
			tx.Add(&knftables.Chain{Name: chain, Comment: ptr(fmt.Sprintf("ns/svc-%d", i))})
			tx.Flush(&knftables.Chain{Name: chain})
			tx.Add(&knftables.Rule{Chain: chain, Rule: fmt.Sprintf("meta l4proto tcp dnat to 10.1.0.%d:8080", i+1)})
			tx.Add(&knftables.Element{
				Map: "service-ips", Key: []string{fmt.Sprintf("10.96.0.%d", i+1), "tcp", "80"}, Value: []string{"goto " + chain}, Comment: ptr(chain),
			})
		}
	}
	frame := func(tx *knftables.Transaction) {
		tx.Add(&knftables.Table{Comment: ptr("rules for a proxy")})
		for _, hook := range []knftables.BaseChainHook{knftables.PreroutingHook, knftables.OutputHook} {
			name := "nat-" + string(hook)
			tx.Add(base(name, knftables.NATType, hook, knftables.DNATPriority))
			tx.Flush(&knftables.Chain{Name: name})
			tx.Add(&knftables.Chain{Name: "services"})
			tx.Add(&knftables.Rule{Chain: name, Rule: "jump services"})
		}
		tx.Add(&knftables.Chain{Name: "mark-for-masquerade"})
		tx.Flush(&knftables.Chain{Name: "mark-for-masquerade"})
		tx.Add(&knftables.Rule{Chain: "mark-for-masquerade", Rule: knftables.Concat("mark", "set", "mark", "or", "0x4000")})
		tx.Add(&knftables.Map{Name: "service-ips", Type: "ipv4_addr . inet_proto . inet_service : verdict", Comment: ptr("ClusterIPs")})
		tx.Flush(&knftables.Chain{Name: "services"})
		tx.Add(&knftables.Rule{Chain: "services", Rule: "ip daddr . meta l4proto . th dport vmap @service-ips"})
	}
	given := func(tx *knftables.Transaction) {
		frame(tx)
		services(tx, 3)
	}
	return []usage{
		{name: "program starts", want: done, when: only(given)},
		{name: "program starts again", want: done, given: given, when: only(given)},
		{name: "program starts from nothing again", want: done, given: given, when: only(func(tx *knftables.Transaction) {
			tx.Add(&knftables.Table{})
			tx.Delete(&knftables.Table{})
			frame(tx)
			services(tx, 2)
		})},
		{name: "program removes a service", want: done, given: given, when: only(func(tx *knftables.Transaction) {
			tx.Delete(&knftables.Element{Map: "service-ips", Key: []string{"10.96.0.2", "tcp", "80"}})
			tx.Flush(&knftables.Chain{Name: "service-1"})
			tx.Delete(&knftables.Chain{Name: "service-1"})
		})},
		{name: "program moves a service", want: done, given: given, when: only(func(tx *knftables.Transaction) {
			tx.Delete(&knftables.Element{Map: "service-ips", Key: []string{"10.96.0.2", "tcp", "80"}})
			tx.Add(&knftables.Element{Map: "service-ips", Key: []string{"10.96.0.2", "tcp", "80"}, Value: []string{"goto service-2"}})
		})},
		{name: "program fails half way", want: notFound, given: given, when: only(func(tx *knftables.Transaction) {
			tx.Flush(&knftables.Chain{Name: "services"})
			tx.Flush(&knftables.Map{Name: "service-ips"})
			tx.Delete(&knftables.Chain{Name: "service-0"})
			tx.Add(&knftables.Rule{Chain: "nat-output", Rule: "jump nowhere"})
			tx.Add(&knftables.Set{Name: "new", Type: "ipv4_addr"})
		})},
		{name: "program does nothing", want: done, given: given, when: only(func(*knftables.Transaction) {})},
		{name: "program cleans up", want: done, given: given, when: only(func(tx *knftables.Transaction) {
			tx.Add(&knftables.Table{})
			tx.Delete(&knftables.Table{})
		})},
	}
}
