"""Sparse matrices of blocks. They are not there yet: the names can be imported, and say so when they are used."""

from warp._unimplemented import names_of

BSR_STATUS_SUCCESS = 0
BSR_STATUS_ROW_CAPACITY_EXCEEDED = 1

globals().update(
    names_of(
        __name__,
        "sparse matrices",
        "BsrMatrix BsrTripletMap bsr_axpy_work_arrays bsr_mm_work_arrays",
        """bsr_assign bsr_axpy bsr_block_index bsr_compress bsr_copy bsr_diag bsr_from_triplets bsr_get_diag
        bsr_identity bsr_matrix_t bsr_mm bsr_mv bsr_row_index bsr_scale bsr_set_diag bsr_set_from_mapped_values
        bsr_set_from_triplets bsr_set_identity bsr_set_transpose bsr_set_zero bsr_transposed bsr_zeros""",
    )
)
