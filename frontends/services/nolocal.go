package services

import "github.com/weft-proxy/weft/frontends/services/model"

const (
	internal = iota
	external
	policyCount
)

// missing counts ports with the policy Local and endpoints only on other nodes, by policy and family.
type missing [policyCount][model.NumFamilies]int

// missingOf counts only families with a ClusterIP, as kube-proxy does.
func missingOf(s *model.Service) (out missing) {
	if s == nil || !s.InternalLocal && !s.ExternalLocal {
		return out
	}
	for i := range s.Ports {
		for f := range s.ClusterIPs {
			b := &s.Ports[i].Backends[f]
			if !s.ClusterIPs[f].IsValid() || b.Local.Len() > 0 || b.Cluster.Len() == 0 {
				continue
			}
			if s.InternalLocal {
				out[internal][f]++
			}
			if s.ExternalLocal {
				out[external][f]++
			}
		}
	}
	return out
}

type noLocalEndpoints struct {
	of  map[model.Key]missing
	sum missing
}

func newNoLocalEndpoints() *noLocalEndpoints {
	return &noLocalEndpoints{of: make(map[model.Key]missing)}
}

func (l *noLocalEndpoints) apply(changes []model.Change) {
	for _, c := range changes {
		l.add(l.of[c.Name], -1)
		delete(l.of, c.Name)
		if m := missingOf(c.New); m != (missing{}) {
			l.of[c.Name] = m
			l.add(m, 1)
		}
	}
}

func (l *noLocalEndpoints) add(m missing, by int) {
	for p := range m {
		for f := range m[p] {
			l.sum[p][f] += by * m[p][f]
		}
	}
}
