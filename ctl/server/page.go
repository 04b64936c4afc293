package server

import "aimon.at/vfsd/ctl"

// maxPage is how many rows one answer holds at most.
const maxPage = 5000

// limit returns how many rows the caller wants in one answer.
func (r request) limit() (int, error) {
	n, err := r.number("limit")
	if n == 0 || n > maxPage {
		n = maxPage
	}
	return int(n), err
}

// page answers with the part of a list that the caller asks for, from being a position in it. These lists
// grow at their ends, so that what is there at the first page and stays is told once. Where something is
// removed between two pages (a session, a mount, a token that is forgotten), what comes after it moves up, and as many
// rows at the seam are passed over.
func page[T, W any](r request, all []T, wire func(T) W) (any, error) {
	from, err := r.number("from")
	if err != nil {
		return nil, err
	}
	n, err := r.limit()
	if err != nil {
		return nil, err
	}
	all = all[min(from, uint64(len(all))):]
	p := ctl.Page[W]{Items: []W{}}
	if len(all) > n {
		all, p.Next = all[:n], from+uint64(n)
	}
	for _, v := range all {
		p.Items = append(p.Items, wire(v))
	}
	return p, nil
}
