package intervals

import "github.com/weft-proxy/weft/nft/set"

// Union has ordered IDs of separate intervals.
type Union []string

// Add adds an interval, in the order of the first keys.
func (u *Union) Add(first, last string) {
	if n := len(*u); n > 0 {
		before := (*u)[n-1]
		begin, end := before[:len(first)], before[len(first):]
		if end >= first || set.Next(end) == first {
			(*u)[n-1] = begin + max(end, last)
			return
		}
	}
	*u = append(*u, first+last)
}
