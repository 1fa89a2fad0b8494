"""Operations for those who want to know what was learned."""

from banditrank.service.operations import Operation

OPERATIONS: tuple[Operation, ...] = ()
