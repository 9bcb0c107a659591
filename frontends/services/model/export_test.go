package model

// Node returns this node as of the last Refresh.
func (m *Model) Node() Node { return m.reportedNode }
