package model

// podIndex finds pods by the value of a label; it has only the requested keys.
type podIndex map[string]podsByValue

type podsByValue map[string]map[*pod]struct{}

// maxIndexedKeys limits a podIndex, which then begins anew: policies bring any number of keys.
const maxIndexedKeys = 32

func (n *namespace) podsWith(l label) map[*pod]struct{} {
	values := n.byLabel[l.key]
	if values == nil {
		values = make(podsByValue)
		for _, p := range n.pods {
			values.add(l.key, p)
		}
		if n.byLabel == nil || len(n.byLabel) == maxIndexedKeys {
			n.byLabel = make(podIndex)
		}
		n.byLabel[l.key] = values
	}
	return values[l.value]
}

func (x podIndex) add(p *pod) {
	for key, values := range x {
		values.add(key, p)
	}
}

func (x podIndex) remove(p *pod) {
	for key, values := range x {
		values.remove(key, p)
	}
}

func (v podsByValue) add(key string, p *pod) {
	value, ok := lookup(p.labels.values, key)
	if !ok {
		return
	}
	pods := v[value]
	if pods == nil {
		pods = make(map[*pod]struct{})
		v[value] = pods
	}
	pods[p] = struct{}{}
}

func (v podsByValue) remove(key string, p *pod) {
	value, ok := lookup(p.labels.values, key)
	if !ok {
		return
	}
	pods := v[value]
	if delete(pods, p); len(pods) == 0 {
		delete(v, value)
	}
}
