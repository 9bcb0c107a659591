package knft_test

import (
	"fmt"

	"sigs.k8s.io/knftables"
)

// programUsages are modelled on the life of a service proxy.
func programUsages() []usage {
	services := func(n int) step {
		return func(tx *knftables.Transaction) {
			for i := range n {
				name := fmt.Sprintf("service-%d", i)
				e := pair("service-ips", "goto "+name, fmt.Sprintf("10.96.0.%d", i+1), "tcp", "80")
				e.Comment = ptr(name)
				add(&knftables.Chain{Name: name, Comment: ptr(fmt.Sprintf("ns/svc-%d", i))})(tx)
				flush(chain(name))(tx)
				add(rule(name, fmt.Sprintf("meta l4proto tcp dnat to 10.1.0.%d:8080", i+1)), e)(tx)
			}
		}
	}
	var frame []step
	frame = append(frame, add(&knftables.Table{Comment: ptr("rules for a proxy")}))
	for _, hook := range []knftables.BaseChainHook{knftables.PreroutingHook, knftables.OutputHook} {
		name := "nat-" + string(hook)
		frame = append(frame,
			add(base(name, knftables.NATType, hook, knftables.DNATPriority)),
			flush(chain(name)),
			add(chain("services"), rule(name, "jump services")),
		)
	}
	ips := &knftables.Map{Name: "service-ips", Type: "ipv4_addr . inet_proto . inet_service : verdict", Comment: ptr("ClusterIPs")}
	frame = append(frame,
		add(chain("mark-for-masquerade")),
		flush(chain("mark-for-masquerade")),
		add(rule("mark-for-masquerade", knftables.Concat("mark", "set", "mark", "or", "0x4000")), ips),
		flush(chain("services")),
		add(rule("services", "ip daddr . meta l4proto . th dport vmap @service-ips")),
	)
	again := steps(add(table()), remove(table()))
	second := &knftables.Element{Map: "service-ips", Key: []string{"10.96.0.2", "tcp", "80"}}
	given := steps(steps(frame...), services(3))
	return []usage{
		{name: "program starts", want: done, when: given},
		{name: "program starts again", want: done, given: given, when: given},
		{name: "program starts from nothing again", want: done, given: given, when: steps(again, steps(frame...), services(2))},
		{name: "program removes a service", want: done, given: given,
			when: steps(remove(second), flush(chain("service-1")), remove(chain("service-1")))},
		{name: "program moves a service", want: done, given: given,
			when: steps(remove(second), add(pair("service-ips", "goto service-2", second.Key...)))},
		{name: "program fails half way", want: notFound, given: given, when: steps(
			flush(chain("services"), &knftables.Map{Name: "service-ips"}),
			remove(chain("service-0")),
			add(rule("nat-output", "jump nowhere"), set("new", "ipv4_addr")),
		)},
		{name: "program does nothing", want: done, given: given, when: steps()},
		{name: "program cleans up", want: done, given: given, when: again},
	}
}
